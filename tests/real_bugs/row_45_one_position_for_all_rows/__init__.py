"""The positions of the first row are those of all rows."""

import right_paths


class CausalLM(right_paths.CausalLM):
    def placed(self, position_ids):
        return position_ids[:1]
