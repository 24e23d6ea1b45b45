//! Tests of real projects whose runners are rows of a table, and of commands that report what they ran.

use fluffy_workflow::{Outcome, Suite, green, red};

use crate::scene::{Ask, Scene, Tools, path};
use crate::suites::{counts, no_result, told};

/// Red for one test of the task, green once the code is right, and the same names in both runs.
#[track_caller]
pub(crate) fn from_red_to_green(
    scene: &Scene,
    test: (&str, &str),
    code: (&str, &str),
    expected: &[&str],
) {
    let before = scene.test();
    scene.stage(test.0, test.1);
    let first = scene.test();
    let written = [path(test.0)].into();
    let proof = red(Some(&before.run), &first.run, &written);
    let proof = proof.unwrap_or_else(|error| panic!("{error}: {}", first.summary));
    green(Some(&before.run), Some(&proof), &first.run).unwrap_err();
    scene.stage(code.0, code.1);
    let second = scene.test();
    let answer = green(Some(&before.run), Some(&proof), &second.run);
    answer.unwrap_or_else(|error| panic!("{error}: {}", second.summary));
    assert_eq!(told(&second), expected, "{}", second.summary);
}

#[test]
fn dep_7_unittest_goes_from_red_to_green() {
    let calc = "import unittest\nimport calc\nclass Calc(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n    @unittest.skip('later')\n    def test_later(self):\n        pass\n    def test_many(self):\n        for n in (1, 2):\n            with self.subTest(n=n):\n                self.assertGreater(n, 0)\n";
    let code = "def add(a, b):\n    return a + b\n";
    let scene = Scene::new(&[("calc.py", code), ("tests/test_calc.py", calc)]);
    let double = "import unittest\nfrom calc import double\nclass Double(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(double(4), 8)\n";
    let expected = [
        "Passed tests/test_calc.py: Calc::test_add @ tests/test_calc.py",
        "Skipped tests/test_calc.py: Calc::test_later @ tests/test_calc.py",
        "Passed tests/test_calc.py: Calc::test_many @ tests/test_calc.py",
        "Passed tests/test_double.py: Double::test_double @ tests/test_double.py",
    ];
    let code = format!("{code}def double(a):\n    return 2 * a\n");
    from_red_to_green(&scene, ("tests/test_double.py", double), ("calc.py", &code), &expected);
    let part = scene.test_with(&Ask { pattern: Some("double"), ..Ask::default() }).unwrap();
    assert_eq!(told(&part), &expected[3..]);
    scene.stage("tests/test_double.py", "import unittest\nimport os\nos._exit(0)\n");
    no_result(&scene.test(), "(unittest)");
}

#[test]
fn dep_7_rspec_goes_from_red_to_green() {
    let code = "module Sum\n  def self.add(a, b) = a + b\nend\n";
    let spec = "require 'sum'\nRSpec.describe Sum do\n  it('adds') { expect(Sum.add(1, 2)).to eq 3 }\n  it('later', skip: true) {}\nend\n";
    let scene = Scene::new(&[("lib/sum.rb", code), ("spec/sum_spec.rb", spec)]);
    let double = "require 'double'\nRSpec.describe Double do\n  context 'of four' do\n    it('is eight') { expect(Double.of(4)).to eq 8 }\n  end\nend\n";
    let expected = [
        "Passed spec/double_spec.rb: Double of four is eight @ spec/double_spec.rb",
        "Passed spec/sum_spec.rb: Sum adds @ spec/sum_spec.rb",
        "Skipped spec/sum_spec.rb: Sum later @ spec/sum_spec.rb",
    ];
    let code = ("lib/double.rb", "module Double\n  def self.of(a) = 2 * a\nend\n");
    from_red_to_green(&scene, ("spec/double_spec.rb", double), code, &expected);
    let part = scene.test_with(&Ask { pattern: Some("is eight"), ..Ask::default() }).unwrap();
    counts(&part, 1, 0, 0);
}

#[test]
fn dep_7_minitest_goes_from_red_to_green() {
    let code = "module Sum\n  def self.add(a, b) = a + b\nend\n";
    let test = "require 'minitest/autorun'\nrequire 'sum'\nclass SumTest < Minitest::Test\n  def test_adds = assert_equal(3, Sum.add(1, 2))\n  def test_later = skip('later')\nend\n";
    let scene = Scene::new(&[("lib/sum.rb", code), ("test/test_sum.rb", test)]);
    let double = "require 'minitest/autorun'\nrequire 'sum'\nclass DoubleTest < Minitest::Test\n  def test_doubles = assert_equal(8, Sum.double(4))\nend\n";
    let expected = [
        "Passed test/double_test.rb: DoubleTest::test_doubles @ test/double_test.rb",
        "Passed test/test_sum.rb: SumTest::test_adds @ test/test_sum.rb",
        "Skipped test/test_sum.rb: SumTest::test_later @ test/test_sum.rb",
    ];
    let more = code.replace("\nend\n", "\n  def self.double(a) = 2 * a\nend\n");
    from_red_to_green(&scene, ("test/double_test.rb", double), ("lib/sum.rb", &more), &expected);
    let part = scene.test_with(&Ask { pattern: Some("doubles"), ..Ask::default() }).unwrap();
    counts(&part, 1, 0, 0);
    scene.stage("test/double_test.rb", "require 'minitest/autorun'\nexit! 0\n");
    no_result(&scene.test(), "(minitest)");
}

#[test]
fn dep_7_phpunit_goes_from_red_to_green() {
    let code = "<?php function add($a, $b) { return $a + $b; }\n";
    let head = "<?php\nuse PHPUnit\\Framework\\TestCase;\n";
    let test = format!(
        "{head}require_once __DIR__ . '/../src/sum.php';\nclass SumTest extends TestCase {{\n  public function testAdds() {{ $this->assertSame(3, add(1, 2)); }}\n  public function testLater() {{ $this->markTestSkipped('later'); }}\n}}\n"
    );
    let scene = Scene::new(&[("src/sum.php", code), ("tests/SumTest.php", &test)]);
    let double = format!(
        "{head}require_once __DIR__ . '/../src/double.php';\nclass DoubleTest extends TestCase {{\n  public function testDoubles() {{ $this->assertSame(8, double(4)); }}\n}}\n"
    );
    let expected = [
        "Passed tests/DoubleTest.php: DoubleTest::testDoubles @ tests/DoubleTest.php",
        "Passed tests/SumTest.php: SumTest::testAdds @ tests/SumTest.php",
        "Skipped tests/SumTest.php: SumTest::testLater @ tests/SumTest.php",
    ];
    let code = ("src/double.php", "<?php function double($a) { return 2 * $a; }\n");
    from_red_to_green(&scene, ("tests/DoubleTest.php", &double), code, &expected);
}

const CMAKE: &str = "cmake_minimum_required(VERSION 3.16)\nproject(sum C)\nenable_testing()\nadd_library(sum sum.c)\nfile(GLOB tests tests/test_*.c)\nforeach(file ${tests})\n  get_filename_component(name ${file} NAME_WE)\n  add_executable(${name} ${file})\n  target_link_libraries(${name} sum)\n  add_test(NAME ${name} COMMAND ${name})\nendforeach()\n";

#[test]
fn dep_7_ctest_goes_from_red_to_green() {
    let code = "int add(int a, int b) { return a + b; }\n";
    let test = "int add(int, int);\nint main(void) { return add(1, 2) != 3; }\n";
    let files = [("CMakeLists.txt", CMAKE), ("sum.c", code), ("tests/test_sum.c", test)];
    let scene = Scene::new(&files);
    // What is built elsewhere is not looked at.
    scene.write("build/CTestTestfile.cmake", "add_test(planted true)\n");
    let double = "int twice(int);\nint main(void) { return twice(4) != 8; }\n";
    let expected = [
        "Passed test_double: test_double @ tests/test_double.c",
        "Passed test_sum: test_sum @ tests/test_sum.c",
    ];
    let more = format!("{code}int twice(int a) {{ return 2 * a; }}\n");
    from_red_to_green(&scene, ("tests/test_double.c", double), ("sum.c", &more), &expected);
    scene.stage("sum.c", code.replace('+', "-"));
    let wrong = scene.test();
    assert_eq!(wrong.run.outcome("test_sum: test_sum"), Some(Outcome::Failed), "{}", wrong.summary);
}

#[test]
fn dep_7_make_check_is_read_as_tap_or_by_its_code() {
    let tap = "check:\n\t@sh tests/run.sh\n";
    let script = "echo 1..2\necho 'ok 1 - adds'\ntest -e done && echo 'ok 2 - doubles' && exit 0\necho 'not ok 2 - doubles'\nexit 1\n";
    let scene = Scene::new(&[("Makefile", tap), ("tests/run.sh", script)]);
    let first = scene.test();
    assert_eq!(
        told(&first),
        ["Passed .: adds @ -", "Failed .: doubles @ -", "Passed .: make check @ -"]
    );
    scene.stage("done", "");
    counts(&scene.test(), 2, 0, 0);
    let plain = Scene::new(&[("Makefile", "test:\n\ttest -e done\n")]);
    assert_eq!(told(&plain.test()), ["Failed .: make test @ -"]);
    plain.stage("done", "");
    assert_eq!(told(&plain.test()), ["Passed .: make test @ -"]);
}

#[test]
fn dep_7_command_may_leave_junit_files() {
    let report = "<testsuite tests=\"2\" failures=\"1\"><testcase classname=\"com.a.SumTest\" name=\"adds\"/><testcase classname=\"com.a.SumTest\" name=\"doubles\"><failure message=\"no\"/></testcase></testsuite>";
    let script = format!("#!/bin/sh\nmkdir -p out\necho '{report}' > out/junit-a.xml\nexit 1\n");
    let files =
        [("check", script.as_str()), ("java/com/a/SumTest.java", ""), ("junit-old.xml", report)];
    let scene = Scene::new(&files);
    let suites = [Suite::configured(vec!["./check".to_owned()])];
    let tested = scene.test_with(&Ask { suites: Some(&suites), ..Ask::default() }).unwrap();
    counts(&tested, 1, 1, 0);
    let expected = [
        "Passed .: ./check @ -",
        "Passed com.a.SumTest: adds @ java/com/a/SumTest.java",
        "Failed com.a.SumTest: doubles @ java/com/a/SumTest.java",
    ];
    assert_eq!(told(&tested), expected);
    // A report that does not agree with the code, or was there before, is not believed.
    let scene =
        Scene::new(&[("check", &script.replace("exit 1", "exit 0")), ("junit-old.xml", report)]);
    no_result(
        &scene.test_with(&Ask { suites: Some(&suites), ..Ask::default() }).unwrap(),
        "(test command)",
    );
    let scene = Scene::new(&[("check", "#!/bin/sh\nexit 0\n"), ("junit-old.xml", report)]);
    counts(&scene.test_with(&Ask { suites: Some(&suites), ..Ask::default() }).unwrap(), 1, 0, 0);
}

#[test]
fn dep_7_missing_runner_of_the_table_has_a_fix() {
    let elsewhere =
        || Tools { path: vec!["/usr/share".into()], nothing_else: true, ..Tools::default() };
    for (files, id, fix) in [
        (vec![("pom.xml", "")], "(Maven)", "JDK and Maven"),
        (vec![("build.gradle", "")], "(Gradle)", "JDK and Gradle"),
        (vec![("a.sln", "")], "(dotnet test)", ".NET SDK"),
        (vec![("CMakeLists.txt", CMAKE)], "(CTest)", "CMake"),
        (vec![("spec/a_spec.rb", "")], "(RSpec)", "`rspec` with `deps.install`"),
        (vec![("test/test_a.rb", "")], "(minitest)", "`minitest` with `deps.install`"),
        (vec![("phpunit.xml", "")], "(PHPUnit)", "`phpunit/phpunit` with `deps.install`"),
    ] {
        let tested = Scene::with(&files, elsewhere()).test();
        no_result(&tested, id);
        let text = tested.summary.to_string();
        assert!(text.contains(fix), "{text}");
    }
    // Python is there and Django is not.
    let manage = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n";
    let tested = Scene::new(&[("manage.py", manage), ("shop/settings.py", "")]).test();
    no_result(&tested, "(Django)");
    assert!(
        tested.summary.to_string().contains("`django` with `deps.install`"),
        "{}",
        tested.summary
    );
}

#[test]
fn dep_7_django_runs_its_tests_with_a_database() {
    let manage = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n";
    let settings = "SECRET_KEY = 'x'\nINSTALLED_APPS = ['shop']\nDATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}\nDEFAULT_AUTO_FIELD = 'django.db.models.AutoField'\n";
    let models = "from django.db import models\nclass Item(models.Model):\n    name = models.CharField(max_length=10)\n";
    let tests = "from django.test import TestCase\nfrom shop.models import Item\nclass ItemTest(TestCase):\n    def test_saves(self):\n        Item.objects.create(name='a')\n        self.assertEqual(Item.objects.count(), 1)\n    def test_is_empty(self):\n        self.assertEqual(Item.objects.count(), 0)\n";
    let files = [
        ("manage.py", manage),
        ("shop/__init__.py", ""),
        ("shop/settings.py", settings),
        ("shop/models.py", models),
        ("shop/tests.py", tests),
    ];
    let scene = Scene::with(&files, Tools::python());
    let test = "from django.test import SimpleTestCase\nfrom shop.double import double\nclass DoubleTest(SimpleTestCase):\n    def test_doubles(self):\n        self.assertEqual(double(4), 8)\n";
    let expected = [
        "Passed shop/test_double.py: DoubleTest::test_doubles @ shop/test_double.py",
        "Passed shop/tests.py: ItemTest::test_is_empty @ shop/tests.py",
        "Passed shop/tests.py: ItemTest::test_saves @ shop/tests.py",
    ];
    let code = ("shop/double.py", "def double(a):\n    return 2 * a\n");
    from_red_to_green(&scene, ("shop/test_double.py", test), code, &expected);
}
