//! C, with make and its job server.

use crate::scene::Scene;

const MAKEFILE: &str = "OBJECTS = a.o b.o c.o d.o e.o f.o main.o
program: $(OBJECTS)
\t$(CC) -o $@ $^
%.o: %.c
\t$(CC) -O1 -c -o $@ $<
parts:
\t+$(MAKE) -C sub
";

const SUB: &str = "all: one two three
one two three:
\ttouch $@
";

fn scene() -> Scene {
    let part = |name: &str| format!("int {name}(void) {{ return 1; }}\n");
    let parts: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(part).into();
    let main = "#include <stdio.h>\nint a(void), b(void), c(void), d(void), e(void), f(void);\n\
                int main(void) { printf(\"%d\\n\", a() + b() + c() + d() + e() + f()); return 0; }\n";
    let names = ["a.c", "b.c", "c.c", "d.c", "e.c", "f.c"];
    let mut files: Vec<(&str, &str)> =
        names.into_iter().zip(&parts).map(|(name, text)| (name, text.as_str())).collect();
    files.extend([("main.c", main), ("Makefile", MAKEFILE), ("sub/Makefile", SUB)]);
    Scene::new(&files)
}

#[test]
fn make_compiles_with_four_jobs_and_shares_them_with_another_make() {
    for scene in [scene(), scene().on_disk()] {
        // Makes of 4.4 and later share their jobs through a named pipe, those before through a plain one.
        let done = scene.works("make -j4 program parts >&2; ./program; ls sub");
        assert_eq!(done.out, "6\nMakefile\none\nthree\ntwo\n");
        assert!(!done.err.contains("jobserver unavailable"), "{}", done.err);
        assert!(done.changes().contains(&"program".to_owned()));
    }
}

#[test]
fn a_c_program_with_threads_memory_and_signals_runs() {
    let program = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile sig_atomic_t seen;
static void handler(int number) { (void)number; seen = 1; }
static void *thread(void *memory) { strcpy(memory, "thread"); return memory; }
int main(void) {
    int fd = memfd_create("memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 4096) != 0) return 1;
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return 2;
    pthread_t id;
    if (pthread_create(&id, NULL, thread, memory) != 0 || pthread_join(id, NULL) != 0) return 3;
    signal(SIGUSR1, handler);
    pid_t child = fork();
    if (child == 0) { strcat(memory, " child"); _exit(kill(getppid(), SIGUSR1)); }
    int status;
    waitpid(child, &status, 0);
    printf("%s %d %d\n", memory, WEXITSTATUS(status), seen);
    return 0;
}
"#;
    let scene = Scene::new(&[("main.c", program)]);
    let done =
        scene.works("gcc -D_GNU_SOURCE -Wall -Werror -pthread -o /tmp/main main.c; /tmp/main");
    assert_eq!(done.out, "thread child 0 1\n");
}
