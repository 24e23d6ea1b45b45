//! What an errand leaves is taken by name and kind, or refused by name.

use crate::scene::{Scene, read};

#[test]
fn an_errand_hands_back_what_it_wrote_and_removed_and_changes_no_layer() {
    let scene = Scene::new();
    let left = scene.left("echo more >> a; rm b; mkdir n; echo x > n/x; chmod +x n/x; rm -r d");
    let files: Vec<_> = left.files.iter().map(|it| (it.path.as_str(), it.executable)).collect();
    assert_eq!(files, [("a", false), ("n/x", true)]);
    assert_eq!(left.files[0].bytes, b"files/a\nmore\n");
    let removed: Vec<_> = left.removed.iter().map(|path| path.as_str()).collect();
    assert_eq!(removed, ["b", "d"]);
    assert_eq!(left.refused, []);
    assert_eq!(read(&scene.path("files/a")), "files/a\n");
    assert!(scene.path("files/d/c").exists());
}

#[test]
fn lesson_l31_links_pipes_hard_links_and_odd_names_are_refused_by_name() {
    let scene = Scene::new();
    let left = scene.left(
        r#"ln -s /etc/passwd link; ln -s . d/loop; mkfifo pipe; echo 1 > one; ln one two
        : > "$(printf 'b\377d')"; chmod u+s a; mknod device c 1 3; true"#,
    );
    let refused: Vec<_> = left.refused.iter().map(|it| it.name.as_str()).collect();
    for name in ["link", "d/loop", "pipe", "one", "two", r"b\xffd", "a"] {
        assert!(refused.contains(&name), "{name}: {refused:?}");
    }
    assert_eq!(left.files, []);
}

#[test]
fn a_file_that_is_too_large_is_refused_and_the_others_are_taken() {
    let scene = Scene::new();
    let left = scene.left("truncate -s 100M large; echo 1 > small");
    assert_eq!(left.refused[0].name, "large");
    let files: Vec<_> = left.files.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(files, ["small"]);
}

#[test]
fn what_is_too_much_is_refused_whole() {
    let scene = Scene::new();
    let left = scene.left("for i in 1 2 3 4 5; do truncate -s 15M $i; done");
    assert_eq!((left.files.len(), left.removed.len()), (0, 0));
    assert_eq!(left.refused[0].name, ".");
    assert!(left.refused[0].why.contains("take more than"), "{}", left.refused[0].why);
}
