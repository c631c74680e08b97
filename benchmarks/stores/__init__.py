"""What do the stores take, beside what they are like?"""
