print("SUCCEEDED")
