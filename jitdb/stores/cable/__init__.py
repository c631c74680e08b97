"""Cable: the posts and messages of a peer-to-peer chat.

    from jitdb.stores.cable.post import TEXT, sign_post, verify_post

    post = sign_post(secret, TEXT, 1700000000000, channel="default", text="hello")
    verify_post(post).text

Needs `pip install 'jitdb[stores]'` where posts are signed or verified. Importing this package alone imports
nothing else.
"""
