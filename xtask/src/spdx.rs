//! Licence expressions, such as `(MIT OR Apache-2.0) AND Unicode-3.0`.

use std::iter::Peekable;
use std::vec::IntoIter;

/// Whether an expression can be met with allowed licences alone; `None` when it is malformed.
///
/// `AND` binds stronger than `OR`. A licence `WITH` an exception is allowed only as such. The slash of
/// older packages (`MIT/Apache-2.0`) means `OR`.
pub(crate) fn satisfiable(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = words.into_iter().peekable();
    let answer = any(&mut words, allowed)?;
    words.next().is_none().then_some(answer)
}

type Words<'a> = Peekable<IntoIter<&'a str>>;

fn any(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut answer = all(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        answer |= all(words, allowed)?;
    }
    Some(answer)
}

fn all(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut answer = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        answer &= one(words, allowed)?;
    }
    Some(answer)
}

fn one(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    match words.next()? {
        "(" => {
            let answer = any(words, allowed)?;
            words.next_if_eq(&")").map(|_| answer)
        }
        ")" | "AND" | "OR" | "WITH" => None,
        licence if words.next_if_eq(&"WITH").is_some() => {
            Some(allowed(&format!("{licence} WITH {}", words.next()?)))
        }
        licence => Some(allowed(licence)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: Option<bool>) {
        let list = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        let answer = satisfiable(expression, &|licence| list.contains(&licence));
        assert_eq!(answer, expected, "{expression}");
    }

    #[test]
    fn one_branch_of_or_is_enough_and_every_part_of_and_is_needed() {
        check("MIT", Some(true));
        check("GPL-3.0", Some(false));
        check("GPL-3.0 OR MIT", Some(true));
        check("GPL-3.0/MIT", Some(true));
        check("MIT AND GPL-3.0", Some(false));
        check("MIT AND GPL-3.0 OR ISC", Some(true));
        check("(MIT OR GPL-3.0) AND ISC", Some(true));
        check("MIT AND (GPL-3.0 OR GPL-2.0)", Some(false));
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        check("Apache-2.0 WITH LLVM-exception", Some(true));
        check("Apache-2.0", Some(false));
        check("MIT WITH LLVM-exception", Some(false));
    }

    #[test]
    fn a_malformed_expression_has_no_answer() {
        for expression in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "AND MIT", "MIT WITH"] {
            check(expression, None);
        }
    }
}
