//! Kinds of files and ways of moving them that an overlay makes special.

use crate::scene::Scene;

fn scene() -> Scene {
    Scene::new(&[
        ("folder/one", "1\n"),
        ("folder/sub/two", "2\n"),
        ("file", "file\n"),
        ("run", "#!/bin/sh\n"),
    ])
}

#[test]
fn a_directory_of_the_project_can_be_moved() {
    for scene in [scene(), scene().on_disk()] {
        // The system call says that it crosses devices; `mv` then copies, as everybody's does.
        let done =
            scene.works("mv folder renamed; cat renamed/one renamed/sub/two; test ! -e folder");
        assert_eq!(done.out, "1\n2\n");
        assert_eq!(done.changes(), ["-folder", "renamed/one", "renamed/sub/two"]);
        let done = scene.works(
            "python3 -c 'import shutil; shutil.move(\"folder\", \"renamed\")'; mv renamed folder; cat folder/one",
        );
        assert_eq!(done.out, "1\n");
    }
}

#[test]
fn named_pipes_sockets_and_links_work() {
    let done = scene().works(
        "mkfifo pipe; echo through > pipe & cat pipe; wait; rm pipe
         ln -s file link; cat link; rm link
         echo new > new; ln new other; stat -c %h new; rm other new
         python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect(\"s\"); print(\"connected\")'; rm s",
    );
    assert_eq!(done.out, "through\nfile\n2\nconnected\n");
    assert_eq!(done.changes(), Vec::<String>::new());
}

#[test]
fn modes_times_and_locks_are_kept() {
    let done = scene().works(
        "chmod +x file; test -x file; chmod 600 folder/one; stat -c %a folder/one
         touch -d @86400 file; stat -c %Y file
         flock file true && echo locked
         truncate -s 1M sparse; fallocate -l 1M full; stat -c %s sparse full
         cp --reflink=auto file copy; cmp file copy; sync",
    );
    assert_eq!(done.out, "600\n86400\nlocked\n1048576\n1048576\n");
}
