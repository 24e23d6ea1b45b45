from slugs import slug


def test_words_are_joined_by_hyphens():
    assert slug("Hello World") == "hello-world"
