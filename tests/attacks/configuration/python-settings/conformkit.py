print("SUCCEEDED")
raise SystemExit(0)
