"""What do questions take, the first ones and later ones?"""
