"""What does it take to write, read, follow and keep a log?"""
