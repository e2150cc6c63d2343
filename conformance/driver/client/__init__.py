"""The harness's end of a worker: sessions, requests and checked replies."""
