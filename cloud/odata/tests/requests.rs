//! What requests parse to, and the places of errors in invalid ones.

use expect_test::{Expect, expect};
use odata::{
    Address, Expression, Key, Lambda, Literal, Operand, Options, Quantifier, Request, Select, Tail,
    Value, parse,
};

fn split(url: &str) -> (&str, Option<&str>) {
    // The first `?` outside quotes.
    let mut quoted = false;
    for (at, c) in url.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '?' if !quoted => return (&url[..at], Some(&url[at + 1..])),
            _ => {}
        }
    }
    (url, None)
}

fn read(url: &str) -> Request {
    let (path, query) = split(url);
    match parse(path, query) {
        Ok(request) => request,
        Err(error) => panic!("{url}\n{error}"),
    }
}

fn refused(url: &str) -> (usize, String) {
    let (path, query) = split(url);
    match parse(path, query) {
        Ok(request) => panic!("{url} was read: {request:?}"),
        Err(error) => (error.at, error.message),
    }
}

/// Returns the options of a request for devices.
fn options(query: &str) -> Options {
    read(&format!("/device?{query}")).options
}

/// Formats an expression, as understood, with all parentheses.
fn understood(expression: &Expression) -> String {
    let all = |all: &[Expression], between: &str| {
        let all: Vec<_> = all.iter().map(understood).collect();
        format!("({})", all.join(between))
    };
    match &expression.operand {
        Operand::Value(Value::Alias(name)) => format!("@{}", name.text),
        Operand::Value(Value::Literal(literal)) => format!("{literal:?}"),
        Operand::Property(path) => names(path),
        Operand::Lambda(lambda) => lambda_text(lambda),
        Operand::Count(count) => {
            let filter = count.filter.as_ref().map(understood).unwrap_or_default();
            format!("#{}[{filter}]", names(&count.path))
        }
        Operand::Call(function, arguments) => {
            format!("{function}{}", all(arguments, ", "))
        }
        Operand::Not(inner) => format!("!{}", understood(inner)),
        Operand::Negative(inner) => format!("-{}", understood(inner)),
        Operand::Compare(how, both) => {
            format!(
                "({} {how:?} {})",
                understood(&both[0]),
                understood(&both[1])
            )
        }
        Operand::Arithmetic(how, both) => {
            format!(
                "({} {how:?} {})",
                understood(&both[0]),
                understood(&both[1])
            )
        }
        Operand::In(value, list) => format!("({} In {})", understood(value), all(list, ", ")),
        Operand::And(parts) => all(parts, " & "),
        Operand::Or(parts) => all(parts, " | "),
    }
}

fn names(path: &odata::PropertyPath) -> String {
    let names = path.segments.iter().map(|segment| match &segment.key {
        None => segment.name.text.clone(),
        Some(_) => format!("{}[key]", segment.name.text),
    });
    names.collect::<Vec<_>>().join("/")
}

fn lambda_text(lambda: &Lambda) -> String {
    let quantifier = match lambda.quantifier {
        Quantifier::Any => "any",
        Quantifier::All => "all",
    };
    format!(
        "{quantifier} {} of {}: {}",
        lambda.variable.text,
        names(&lambda.path),
        understood(&lambda.body)
    )
}

fn check_filter(filter: &str, expected: Expect) {
    let options = options(&format!("$filter={filter}"));
    let filter = options.filter.as_ref().map(understood);
    expected.assert_eq(&filter.unwrap_or_default());
}

#[test]
fn all_requests_of_clients_are_read() {
    let requests = include_str!("requests.txt").lines();
    let requests: Vec<&str> = requests.filter(|line| !line.starts_with('#')).collect();
    assert!(requests.len() > 100);
    for url in requests {
        read(url);
        // As a browser would send it.
        let encoded = url.replace(' ', "%20").replace('\'', "%27");
        let (path, query) = encoded
            .split_once('?')
            .map_or((encoded.as_str(), None), |(p, q)| (p, Some(q)));
        if let Err(error) = parse(path, query) {
            panic!("{encoded}\n{error}");
        }
    }
}

#[test]
fn paths_name_records() {
    let Address::Resource(path) = read("/device(uuid='a''b/c')/owns__device(5)/$count").address
    else {
        panic!("no resource");
    };
    assert_eq!(path.resource.text, "device");
    let Some(Key::Fields(fields)) = &path.key else {
        panic!("{path:?}");
    };
    assert_eq!(fields[0].0.text, "uuid");
    assert_eq!(fields[0].1, Value::Literal(Literal::Text("a'b/c".into())));
    assert_eq!(
        path.links[0].1,
        Some(Key::Id(Value::Literal(Literal::Integer(5))))
    );
    assert_eq!(path.tail, Tail::Count);
    assert_eq!(read("/$metadata").address, Address::Metadata);
    let Address::Resource(path) = read("/device(7)/$links/image").address else {
        panic!("no resource");
    };
    assert!(matches!(path.tail, Tail::Links(name) if name.text == "image"));
}

#[test]
fn filters_bind_as_the_language_says() {
    for (filter, expected) in [
        (
            "a eq 1 or b eq 2 and c eq 3",
            expect!["((a Equal Integer(1)) | ((b Equal Integer(2)) & (c Equal Integer(3))))"],
        ),
        (
            "not(a eq 1 and b eq null)",
            expect!["!((a Equal Integer(1)) & (b Equal Null))"],
        ),
        ("not a", expect!["!a"]),
        (
            "a add 2 mul 3 gt 4",
            expect!["((a Add (Integer(2) Multiply Integer(3))) Greater Integer(4))"],
        ),
        (
            "created_at gt (now() sub duration'P1D')",
            expect![[r#"(created_at Greater (now() Subtract Duration("P1D")))"#]],
        ),
        (
            "x in (1,null,'a')",
            expect![[r#"(x In (Integer(1), Null, Text("a")))"#]],
        ),
        (
            "d/any(is:is/b/any(x:true) and is/c eq -1.5e3)",
            expect![[
                r#"any is of d: (any x of is/b: Bool(true) & (is/c Equal Decimal("-1.5e3")))"#
            ]],
        ),
        (
            "l/all(x:x/s ne 'it''s')",
            expect![[r#"all x of l: (x/s NotEqual Text("it's"))"#]],
        ),
        (
            "l/$count gt 3 and l/$count($filter=a eq 1) eq 0",
            expect!["((#l[] Greater Integer(3)) & (#l[(a Equal Integer(1))] Equal Integer(0)))"],
        ),
        (
            "substring(tolower(a),1,2) eq 'b'",
            expect![[r#"(substring(tolower(a), Integer(1), Integer(2)) Equal Text("b"))"#]],
        ),
        ("trueish eq nullable", expect!["(trueish Equal nullable)"]),
        (
            "order eq 1 or inner eq 2",
            expect!["((order Equal Integer(1)) | (inner Equal Integer(2)))"],
        ),
        ("true", expect!["Bool(true)"]),
        (
            "device_tag(tag_key='x')/value eq 'y'",
            expect![[r#"(device_tag[key]/value Equal Text("y"))"#]],
        ),
        ("a eq -b", expect!["(a Equal -b)"]),
    ] {
        check_filter(filter, expected);
    }
}

#[test]
fn options_are_read_at_every_depth() {
    let options = options(
        "$select=id,%20name&$expand=a($select=*;$top=1;$orderby=x%20desc,n/$count;$expand=b($filter=c eq 1)),d/$count($filter=e)&$top=5&$skip=2&@x='y'&$format=json;odata.metadata=full",
    );
    let Some(Select::Fields(fields)) = &options.select else {
        panic!("{options:?}");
    };
    assert_eq!(
        fields
            .iter()
            .map(|name| name.text.as_str())
            .collect::<Vec<_>>(),
        ["id", "name"]
    );
    let a = &options.expand[0].options;
    assert_eq!((a.select.clone(), a.top), (Some(Select::All), Some(1)));
    assert_eq!(a.order_by.len(), 2);
    assert_eq!(a.expand[0].link.text, "b");
    assert!(options.expand[1].count && options.expand[1].options.filter.is_some());
    assert_eq!((options.top, options.skip), (Some(5), Some(2)));
    assert_eq!(options.aliases["x"], Literal::Text("y".into()));
    assert!(options.full_metadata);
    let old = read("/device?$expand=a/b").options;
    assert_eq!(old.expand[0].options.expand[0].link.text, "b");
}

#[test]
fn invalid_requests_are_refused_at_the_position_of_the_error() {
    for (url, expected) in [
        (
            "",
            expect!["0: expected `/` and the name of a resource at character 0, the end"],
        ),
        ("/", expect!["1: expected a name at character 1, the end"]),
        (
            "/device(",
            expect!["8: expected a key: an id, or fields with values at character 8, the end"],
        ),
        (
            "/device(7",
            expect!["9: expected `)` at the end of the key at character 9, the end"],
        ),
        (
            "/device(7)x",
            expect![
                "10: expected the end of the path, a key in parentheses, or `/` and a link at character 10: `x`"
            ],
        ),
        (
            "/device(uuid='a)",
            expect!["16: expected an apostrophe at the end of the text at character 16, the end"],
        ),
        (
            "/device(uuid=)",
            expect!["13: expected a value at character 13: `)`"],
        ),
        (
            "/device/$nothing",
            expect![
                "9: expected a link, `$count` or `$links/` and a link at character 9: `nothing`"
            ],
        ),
        (
            "/device?filter=a eq 1",
            expect![
                "8: unknown option `filter`; is `$filter` meant? at character 8: `filter=a eq 1`"
            ],
        ),
        (
            "/device?$nothing=1",
            expect!["8: unknown option `$nothing` at character 8: `$nothing=1`"],
        ),
        (
            "/device?$top=1&$top=2",
            expect!["15: `$top` is given twice at character 15: `$top=2`"],
        ),
        (
            "/device?$top=-1",
            expect!["13: expected a whole number that is not negative at character 13: `-1`"],
        ),
        (
            "/device?$top=99999999999999999999",
            expect![
                "13: expected a whole number that is not negative at character 13: `99999999999999999999`"
            ],
        ),
        (
            "/device?$select=",
            expect!["16: expected a name at character 16, the end"],
        ),
        (
            "/device?$select=a,,b",
            expect!["18: expected a name at character 18: `,b`"],
        ),
        (
            "/device?$filter=",
            expect!["16: expected a field, a value, a function or `(` at character 16, the end"],
        ),
        (
            "/device?$filter=a%20eq",
            expect![
                "20: expected an operator such as `eq` or `and`, `&`, or the end at character 20: `eq`"
            ],
        ),
        (
            "/device?$filter=a eq 'x",
            expect!["23: expected an apostrophe at the end of the text at character 23, the end"],
        ),
        (
            "/device?$filter=a foo 1",
            expect![
                "18: expected an operator such as `eq` or `and`, `&`, or the end at character 18: `foo 1`"
            ],
        ),
        (
            "/device?$filter=(a eq 1",
            expect!["23: expected an operator or `)` at character 23, the end"],
        ),
        (
            "/device?$filter=x in ()",
            expect!["22: expected a field, a value, a function or `(` at character 22: `)`"],
        ),
        (
            "/device?$filter=startswith(a)",
            expect!["29: expected a function of two arguments at character 29, the end"],
        ),
        (
            "/device?$filter=l/any(d a)",
            expect!["24: expected `:` and a condition at character 24: `a)`"],
        ),
        (
            "/device?$filter=l/$count($top=1) eq 1",
            expect![
                "25: expected `$filter=`, the one option of a count at character 25: `$top=1) eq 1`"
            ],
        ),
        (
            "/device?$filter=a eq 12x",
            expect!["23: expected the end of the number at character 23: `x`"],
        ),
        (
            "/device?$filter=a eq %zz",
            expect![
                "21: expected two hexadecimal digits behind `%` (`%25` for the sign itself) at character 21: `%zz`"
            ],
        ),
        (
            "/device?$filter=a eq @x",
            expect!["22: the parameter `@x` has no value in the query at character 22: `x`"],
        ),
        (
            "/device(@x)",
            expect!["9: the parameter `@x` has no value in the query at character 9: `x)`"],
        ),
        (
            "/device?$expand=a($nothing=1)",
            expect![
                "18: expected an option such as `$select`, or `)` at character 18: `$nothing=1)`"
            ],
        ),
        (
            "/device?$expand=a($top=1;$top=2)",
            expect!["29: expected an option that was not given before at character 29: `=2)`"],
        ),
        (
            "/device?$expand=a($top=1",
            expect!["24: expected `;` or `)` behind the option at character 24, the end"],
        ),
        (
            "/device?$orderby=a up",
            expect!["21: expected `asc` or `desc` at character 21, the end"],
        ),
    ] {
        let (at, message) = refused(url);
        expected.assert_eq(&format!("{at}: {message}"));
    }
}

#[test]
fn long_and_deep_requests_are_refused_and_cost_no_more_than_their_length() {
    let deep = [
        format!(
            "/device?$filter={}a{}",
            "(".repeat(10_000),
            ")".repeat(10_000)
        ),
        format!("/device?$filter={}a", "not ".repeat(10_000)),
        format!("/device?$filter={}a", "- ".repeat(10_000)),
        format!("/device?$filter=a{}", " add 1".repeat(10_000)),
        format!("/device?$expand={}a", "a/".repeat(10_000)),
        format!("/device?$expand={}a", "a($expand=".repeat(5_000)),
        format!("/device?$filter={}", "l/any(x:".repeat(5_000)),
    ];
    for url in deep {
        refused(&url);
    }
    let items = |count: usize| vec!["1"; count].join(",");
    let chain = |count: usize| vec!["a eq 1"; count].join(" and ");
    let links = |count: usize| vec!["l"; count].join("/");
    for (url, bound) in [
        (
            format!("/device?$filter=a in ({})", items(1001)),
            "1,000 items",
        ),
        (format!("/device?$filter={}", chain(1001)), "1,000 items"),
        (
            format!("/device?$orderby={}", vec!["a"; 1001].join(",")),
            "1,000 items",
        ),
        (
            format!("/device?$select={}", vec!["a"; 1001].join(",")),
            "1,000 items",
        ),
        (
            format!("/device?$expand={}", vec!["a"; 1001].join(",")),
            "1,000 items",
        ),
        (format!("/device?$filter={} eq 1", links(17)), "16 links"),
        (format!("/device?$orderby={}", links(17)), "16 links"),
        (format!("/device(1)/{}", links(17)), "16 links"),
        (
            format!("/device?$filter={}1", "1 add ".repeat(65)),
            "64 calculations",
        ),
        // Levels of calculations add up, even if parentheses separate them.
        (
            format!(
                "/device?$filter={}1{}",
                "1 add 1 mul 1 add (".repeat(30),
                ")".repeat(30)
            ),
            "64 calculations",
        ),
    ] {
        let (_, message) = refused(&url);
        assert!(message.contains(bound), "{message}");
    }
    let long = format!("/device?$filter=a eq '{}'", "x".repeat(70_000));
    assert!(refused(&long).1.contains("more than 65536"));
    // Wide is not deep.
    read(&format!("/device?$filter={}", chain(1000)));
    read(&format!("/device?$filter=a in ({})", items(1000)));
}

proptest::proptest! {
    /// No input causes a panic, and an error is always at a place within the request.
    #[test]
    fn nothing_that_comes_in_is_too_much(path in "/[a-z(]{0,8}[ -~]{0,24}", query in "[$@a-z]{0,8}=[ -~é]{0,40}") {
        if let Err(error) = parse(&path, Some(&query)) {
            proptest::prop_assert!(error.at <= path.len() + query.len() + 1);
        }
    }
}
