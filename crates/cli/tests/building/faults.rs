//! A build that is interrupted at any step.

use fluffy_forge::build::Builder;

use crate::scene::{HONEST, Scene, failure, names, script_builder};
use crate::shelf::Fault;

#[test]
fn a_build_that_is_interrupted_anywhere_leaves_the_old_state_or_the_new_one() {
    let whole = Scene::new();
    assert_eq!(failure(&whole.script(HONEST)), None);
    let steps = whole.shelf.calls.get();
    assert!(steps >= 7, "{steps}");
    let scene = Scene::new();
    let builder = Builder::Program(script_builder(HONEST));
    for step in 0..steps {
        for fault in [Fault::Before(step), Fault::After(step)] {
            scene.shelf.calls.set(0);
            scene.shelf.fault.set(Some(fault));
            scene.build(&builder).unwrap_err();
            // Whoever asks is told that it is built only if the entry that says so is there.
            assert_eq!(scene.shelf.is_built(), fault == Fault::After(steps - 1), "{fault:?}");
            assert_eq!(names(&scene.at("project/.fluffy")), ["policy.yaml"]);
            assert!(scene.is_swept());
        }
    }
    scene.shelf.fault.set(None);
    assert_eq!(failure(&scene.build(&builder).unwrap()), None);
    assert!(scene.shelf.is_built());
}

#[test]
fn what_a_killed_build_left_is_swept_by_the_next() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.at("builds/copy/src")).unwrap();
    std::fs::write(scene.at("builds/copy/src/main.py"), "left").unwrap();
    assert_eq!(failure(&scene.script(HONEST)), None);
    assert!(scene.is_swept());
}
