use slugs::slug;

#[test]
fn words_are_joined_by_hyphens() {
    assert_eq!(slug("Hello World"), "hello-world");
}
