"""Templates of pages: the frame, the parts that several pages share, one file per page, the style and the script."""
