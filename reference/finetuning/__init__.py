"""What a trained model is tuned with: answers, preferences, rewards."""
