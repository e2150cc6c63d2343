"""What pages are made of: the frame, the parts that several pages share, one file a page, the style and the script."""
