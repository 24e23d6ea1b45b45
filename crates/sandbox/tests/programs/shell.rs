//! Shells, with everything that people do in them.

use crate::scene::Scene;

#[test]
fn bash_pipes_substitutes_and_controls_jobs() {
    let scene = Scene::new(&[("words", "pear\napple\nfig\n")]);
    let done = scene.works(
        r#"set -o pipefail
        sort words | tr a-z A-Z | head -n 1
        diff <(sort words) <(printf 'apple\nfig\npear\n') && echo same
        cat <<< "here"
        coproc cat; cat=$COPROC_PID; echo through >&"${COPROC[1]}"; exec {COPROC[1]}>&-; read -r line <&"${COPROC[0]}"; echo "$line"; wait $cat
        set -m; sleep 100 & jobs -r | wc -l; kill %sleep; wait %sleep || echo "job ended with $?"
        trap 'echo caught' USR1; kill -USR1 $$
        (ulimit -n 100; ulimit -n); timeout 0.1 sleep 10 || echo "timeout says $?"
        echo out | tee /dev/stderr"#,
    );
    let expected =
        "APPLE\nsame\nhere\nthrough\n1\njob ended with 143\ncaught\n100\ntimeout says 124\nout\n";
    assert_eq!(done.out, expected);
    assert!(done.err.ends_with("out\n"), "{}", done.err);
}

#[test]
fn scripts_of_the_project_run_by_their_first_line() {
    let scene = Scene::new(&[
        ("run.sh", "#!/bin/sh\necho \"$0 $*\"\n"),
        ("run.py", "#!/usr/bin/env python3\nprint('python')\n"),
    ]);
    assert_eq!(scene.works("./run.sh a b; ./run.py").out, "./run.sh a b\npython\n");
}

#[test]
fn names_users_and_time_are_there() {
    let scene = Scene::new(&[("file", "")]);
    let done = scene.works(
        "id -un; id -u; hostname; getent hosts localhost > /dev/null && echo localhost
         date -d @0 +%Y; locale charmap; stat -c %U file; mktemp -d > /dev/null && echo temporary",
    );
    assert_eq!(done.out, "fluffy\n1000\nsandbox\nlocalhost\n1970\nUTF-8\nfluffy\ntemporary\n");
}
