"""The implementation as the suite sees it: components and tools to build, call and differentiate."""
