//! Statements that are inserted, and loops and addresses that are refused.

use super::below;
use super::insertion::{Unwritten, Wanted, inserted};
use loads::class::Kind as Class;
use loads::prefetch::Site;

fn wanted(line: u32, column: u32, class: Class, site: Site) -> Wanted {
    Wanted { line, column: Some(column), class: Some(class), stride: None, site }
}

fn statement(text: &str, wanted: &Wanted) -> Result<String, Unwritten> {
    inserted(text, wanted, 8).map(|(_, statement)| statement)
}

#[test]
fn an_indirect_access_is_prefetched_under_the_condition_of_its_loop() {
    let text =
        "void f() {\n  for (long i = 0; i < n; i++) {\n    sum += data[index[i]] ^ x[i];\n  }\n}\n";
    for column in [12, 16] {
        let (new, statement) =
            inserted(text, &wanted(3, column, Class::Indirect, Site::Inner), 8).unwrap();
        assert_eq!(
            statement,
            "if ((i + 8) < n) __builtin_prefetch((const void *)&data[index[i + 8]]);"
        );
        assert_eq!(new, text.replace("    sum", &format!("    {statement}\n    sum")));
    }
    let stride = statement(text, &wanted(3, 29, Class::Stride, Site::Inner)).unwrap();
    assert!(stride.ends_with("&x[i + 8]);"), "{stride}");
}

#[test]
fn variables_of_the_body_are_replaced() {
    let text = "#define H(k) ((k) % 7)\n\
                for (i = 0; i != n; i += 2) { const struct b *one = &t[H(k[i])];\n found += one->key; }";
    assert_eq!(
        statement(text, &wanted(3, 11, Class::Complex, Site::Inner)).unwrap(),
        "if ((i + 16) < n) __builtin_prefetch((const void *)&(&t[H(k[i + 16])])->key);"
    );
    let text = "for (i = 0; i < n; i++) {\n x = x * 3; s += a[x]; }";
    assert_eq!(
        statement(text, &wanted(2, 18, Class::Complex, Site::Inner)),
        Err(Unwritten::Changing("x".into()))
    );
}

#[test]
fn the_inner_loop_is_gone_through_ahead() {
    let text =
        "for (r = 0; r < m; r++)\n for (uint32_t j = row[r]; j < row[r + 1]; j++) s += x[col[j]];";
    let (new, statement) = inserted(text, &wanted(2, 55, Class::Indirect, Site::Outer), 8).unwrap();
    assert_eq!(
        statement,
        "if ((r + 8) < m) for (uint32_t j = row[r + 8]; j < row[(r + 8) + 1]; j++) \
         __builtin_prefetch((const void *)&x[col[j]]);"
    );
    let whole = text.replace(" for (uint32_t", &format!(" {{ {statement}\n for (uint32_t"));
    assert_eq!(new, format!("{whole} }}"));
}

#[test]
fn loops_that_do_not_count_are_refused() {
    let at = |text: &str| statement(text, &wanted(1, 0, Class::Indirect, Site::Inner));
    assert_eq!(at("while (p) { s += a[p->x]; p = p->next; }"), Err(Unwritten::NotCounting));
    assert_eq!(at("s += a[b[i]];"), Err(Unwritten::NoLoop));
    assert_eq!(at("for (i = 0; i < n; i++) s += t;"), Err(Unwritten::NoAccess));
    assert_eq!(at("for (i = 0; i < n; i++) s += t[u[k]];"), Err(Unwritten::Constant));
    assert_eq!(at("for (;;) s += t[u[k]];"), Err(Unwritten::NotCounting));
    assert_eq!(at("for (i = n - 1; i >= 0; i--) s += t[u[i]];"), Err(Unwritten::NotCounting));
    assert_eq!(at("for (i = 0; i < n; i += f()) s += t[u[i]];"), Err(Unwritten::NotCounting));
}

#[test]
fn a_condition_is_known_ahead_if_it_is_a_bound() {
    let at = |condition: &str| {
        let text = format!("for (i = 0; {condition}; i++) s += t[u[i]];");
        let found = statement(&text, &wanted(1, 0, Class::Indirect, Site::Inner))?;
        let (condition, _) = found.split_once(") __builtin").unwrap();
        Ok(condition.replace("if (", ""))
    };
    for (condition, ahead) in [
        ("i<n - 1", "(i + 8) < n - 1"),
        ("i != s->n && m[k] >= i", "(i + 8) < s->n && m[k] >= (i + 8)"),
        ("n != i", "n > (i + 8)"),
        ("i < (int)v.size()", "(i + 8) < (int)v.size()"),
    ] {
        assert_eq!(at(condition).as_deref(), Ok(ahead));
    }
    for other in [
        "u[i]",
        "i < n && u[i]",
        "i < u[i]",
        "i < n || k",
        "i < n && k",
        "i < f(n)",
        "i < n--",
        "i < n and k",
        "i > n",
        "n < i",
        "i",
        "!(i == n)",
        "i < (k = n)",
        "i < n ? k : 0",
    ] {
        assert_eq!(at(other), Err(Unwritten::Condition), "{other}");
    }
    let text = "for (i = 0; i != n; i += k) s += t[u[i]];";
    let found = statement(text, &wanted(1, 0, Class::Indirect, Site::Inner));
    assert_eq!(found, Err(Unwritten::Condition), "it may count down");
}

#[test]
fn memory_is_read_ahead_only_if_every_iteration_reads_it() {
    let at = |body: &str| {
        let text = format!("for (i = 0; i < n; i++) {{\n{body} }}");
        statement(&text, &wanted(2, 0, Class::Indirect, Site::Inner)).map(|_| ())
    };
    for body in [
        "s += a[b[i]]; if (s) k++; switch (k) { case 1: break; }",
        "if (a[b[i]] > 0) k++;",
        "if (k) s += a[i];",
        "s += a[b[i]] ? 1 : 0;",
        "for (j = 0; j < m; j++) { if (j) break; } s += a[b[i]];",
        "for (p = a[b[i]]; p; p = p->next) s++;",
    ] {
        assert_eq!(at(body), Ok(()), "{body}");
    }
    for body in [
        "if (k) s += a[b[i]];",
        "if (k) z++; else s += a[b[i]];",
        "if (k && a[b[i]]) z++;",
        "s += k ? a[b[i]] : 0;",
        "s += k || a[q(i)];",
        "switch (k) { case 1: s += a[b[i]]; }",
        "s += a[t->k + i]; if (s) break;",
        "if (k) continue; s += a[*(p + i)];",
        "s += a[b[i]]; if (s) return;",
        "if (k) goto end; s += a[b[i]];",
        "s += a[j]; if (k) { j = b[i]; }",
        "for (j = 0; j < a[b[i]]; j++) s++;",
        "s += a[x]; x = k ? y : z; if (k) break; x = b[i];",
    ] {
        assert!(at(body).is_err(), "{body}");
    }
    // What a pointer leads to may be skipped, what it is made of is read before.
    for (value, is_safe) in [("&a[b[i]]", true), ("a[b[i]]->y", false)] {
        let text = format!("for (i = 0; i < n; i++) {{ t *p = {value};\ns += k ? p->x->z : 0; }}");
        let text = if is_safe { text.replace("->z", "") } else { text };
        let found = statement(&text, &wanted(2, 0, Class::Complex, Site::Inner));
        assert_eq!(found.is_ok(), is_safe, "{text}: {found:?}");
    }
    let outer =
        |text: &str| statement(text, &wanted(2, 0, Class::Indirect, Site::Outer)).map(|_| ());
    let plain = "for (r = 0; r < m; r++) {\n for (j = w[r]; j < w[r + 1]; j++) s += x[c[j]]; }";
    assert_eq!(outer(plain), Ok(()));
    for (part, other) in
        [(" for", " if (v[r]) for"), ("s +=", "if (j) s +="), ("; }", "; if (s) break; }")]
    {
        assert_eq!(outer(&plain.replace(part, other)), Err(Unwritten::Conditional), "{part}");
    }
    let left = plain.replace("s += x[c[j]];", "{ s += x[c[j]]; if (s) break; }");
    assert_eq!(outer(&left), Err(Unwritten::Conditional));
}

/// What is called ahead must change nothing; pointers are followed ahead only if they are there before the loop.
#[test]
fn what_the_loop_itself_makes_is_not_needed_ahead() {
    let at = |body: &str| {
        let text =
            format!("int h(int k) {{ return k * 7; }}\nfor (i = 0; i < n; i++) {{ {body} }}");
        statement(&text, &wanted(2, 26, Class::Complex, Site::Inner)).map(|_| ())
    };
    for body in [
        "s += a[h(k[i])];",
        "a[k[i]]++;",
        "t[h(k[i])].n += 1;",
        "s += t[i]->p->n; u[i] = s;",
        "k[i] = a[k[i]];",
    ] {
        assert_eq!(at(body), Ok(()), "{body}");
    }
    assert_eq!(at("s += a[k[i]] + a[next()];"), Ok(()));
    assert_eq!(at("s += a[i + next()];"), Err(Unwritten::Call("next".into())));
    for body in
        ["s += t[i]->p->n; t[i] = q;", "s += a[b[k[i]]]; fill(k, i);", "s += a[b[k[i]]]; b[i]++;"]
    {
        assert!(matches!(at(body), Err(Unwritten::Written(_))), "{body}");
    }
}

/// `j != e` would be passed by.
#[test]
fn the_inner_loop_ends_though_it_goes_from_line_to_line() {
    let of = |condition: &str| {
        let text = format!(
            "for (r = 0; r < m; r++)\n for (j = w[r], e = w[r + 1]; {condition}; j++)\n s += x[j];"
        );
        let wanted = Wanted { stride: Some(4), ..wanted(3, 0, Class::Stride, Site::Outer) };
        statement(&text, &wanted)
    };
    assert_eq!(
        of("j != e").unwrap(),
        "if ((r + 8) < m) for (j = w[r + 8], e = w[(r + 8) + 1]; j < e; j += 16) \
         __builtin_prefetch((const void *)&x[j]);"
    );
    assert_eq!(of("x[j]"), Err(Unwritten::Condition));
}

#[test]
fn a_link_must_not_lead_out_of_the_folder() {
    let outer = std::env::temp_dir().join(format!("tdtool-below-{}", std::process::id()));
    let folder = outer.join("own");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    for path in [outer.join("out.c"), folder.join("in.c")] {
        std::fs::write(path, "").unwrap();
    }
    for (to, is_below) in [("in.c", true), ("../out.c", false)] {
        let link = folder.join("link.c");
        std::os::unix::fs::symlink(to, &link).unwrap();
        assert_eq!(below(&folder, &link, "its source").is_ok(), is_below, "{to}");
        std::fs::remove_file(link).unwrap();
    }
    std::fs::remove_dir_all(outer).unwrap();
}
