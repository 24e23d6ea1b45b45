//! Maven and Gradle on real projects, with the packages of the distribution for a repository.

use fluffy_workflow::red;

use crate::more_suites::from_red_to_green;
use crate::scene::{Scene, path};
use crate::suites::no_result;

#[test]
fn dep_7_maven_goes_from_red_to_green() {
    // The packages of the distribution are a repository that needs no network.
    let settings = "-Dmaven.repo.local=/usr/share/maven-repo\n";
    let pom = "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion><groupId>com.a</groupId><artifactId>sum</artifactId><version>1</version><properties><maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties><dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies></project>";
    let code = "package com.a;\npublic class Sum {\n  public static int add(int a, int b) { return a + b; }\n}\n";
    let test = "package com.a;\nimport org.junit.*;\npublic class SumTest {\n  @Test public void adds() { Assert.assertEquals(3, Sum.add(1, 2)); }\n  @Test @Ignore public void later() {}\n}\n";
    let files = [
        (".mvn/maven.config", settings),
        ("pom.xml", pom),
        ("src/main/java/com/a/Sum.java", code),
        ("src/test/java/com/a/SumTest.java", test),
        // Whoever plants a report or a class finds that the run does not see it.
        ("target/surefire-reports/TEST-com.a.Old.xml", "<testsuite/>"),
        ("target/test-classes/com/a/SumTest.class", "planted"),
    ];
    let scene = Scene::new(&files);
    let double = "package com.a;\nimport org.junit.*;\npublic class DoubleTest {\n  @Test public void doubles() { Assert.assertEquals(8, Sum.twice(4)); }\n}\n";
    let more = code.replace("\n}\n", "\n  public static int twice(int a) { return 2 * a; }\n}\n");
    let expected = [
        "Passed com.a.DoubleTest: doubles @ src/test/java/com/a/DoubleTest.java",
        "Passed com.a.SumTest: adds @ src/test/java/com/a/SumTest.java",
        "Skipped com.a.SumTest: later @ src/test/java/com/a/SumTest.java",
    ];
    let test = ("src/test/java/com/a/DoubleTest.java", double);
    from_red_to_green(&scene, test, ("src/main/java/com/a/Sum.java", &more), &expected);
    // A package that is not there is no red.
    scene.stage("pom.xml", pom.replace("4.x", "3.99"));
    no_result(&scene.test(), "(Maven)");
}

#[test]
fn dep_7_gradle_goes_from_red_to_green() {
    let build = "apply plugin: 'java'\nrepositories { maven { url uri('/usr/share/maven-repo') } }\ndependencies { testCompile 'junit:junit:4.x' }\n";
    let code = "package com.a;\npublic class Sum {\n  public static int add(int a, int b) { return a + b; }\n}\n";
    let test = "package com.a;\nimport org.junit.*;\npublic class SumTest {\n  @Test public void adds() { Assert.assertEquals(3, Sum.add(1, 2)); }\n}\n";
    let files = [
        ("build.gradle", build),
        ("src/main/java/com/a/Sum.java", code),
        ("src/test/java/com/a/SumTest.java", test),
        ("build/test-results/test/TEST-com.a.Old.xml", "<testsuite/>"),
    ];
    let scene = Scene::new(&files);
    let double = "package com.a;\nimport org.junit.*;\npublic class DoubleTest {\n  @Test public void doubles() { Assert.assertEquals(8, Sum.twice(4)); }\n}\n";
    let more = code.replace("\n}\n", "\n  public static int twice(int a) { return 2 * a; }\n}\n");
    let expected = [
        "Passed com.a.DoubleTest: doubles @ src/test/java/com/a/DoubleTest.java",
        "Passed com.a.SumTest: adds @ src/test/java/com/a/SumTest.java",
    ];
    let test = ("src/test/java/com/a/DoubleTest.java", double);
    from_red_to_green(&scene, test, ("src/main/java/com/a/Sum.java", &more), &expected);
    // Without the library of the tests nothing can be built, and no test is the cause.
    let before = scene.test();
    scene.stage("build.gradle", "apply plugin: 'java'\n");
    scene.stage("src/test/java/com/a/MoreTest.java", double.replace("DoubleTest", "MoreTest"));
    let broken = scene.test();
    let written = [path("src/test/java/com/a/MoreTest.java")].into();
    red(Some(&before.run), &broken.run, &written).unwrap_err();
    let text = broken.summary.to_string();
    assert!(text.contains("`org.junit` is not installed"), "{text}");
}
