"""What do somebody's own files take, beside other tools?"""
