package dashboard

import (
	"bytes"
	"net/url"
	"regexp"
)

// links matches what leads to the dashboard, behind the name of an attribute, and tags the
// beginnings of forms. Nothing that users write looks like that: the templates escape its quotes. Each
// begins with a text that is looked for by itself, which is ten times as fast as an alternative of both.
var (
	links = regexp.MustCompile(`="/dashboard[^"#]*`)
	tags  = regexp.MustCompile(`<form [^>]*>`)
)

// leading are the attributes that lead somewhere.
var leading = [][]byte{[]byte("href"), []byte("action"), []byte("data-live")}

// carry returns a page, or a part of one, on which every link and every form keeps to an
// account: the one that an operator has chosen, and not their own. It is done to the page as
// a whole, so that no template can forget it. What names an account already stays as it is.
// The cost is linear in the page.
func carry(page []byte, account string) []byte {
	if account == "" {
		return page
	}
	query := url.Values{"account": {account}}.Encode()
	out, from, forms := make([]byte, 0, len(page)+len(page)/4), 0, asking(page)
	field := func(before int) { // forms that begin before a place
		for ; len(forms) > 0 && forms[0][0] < before; forms = forms[1:] {
			if end := forms[0][1]; !bytes.Contains(page[forms[0][0]:end], []byte("data-own")) { // or it chooses an account
				out = append(append(append(append(out, page[from:end]...), `<input type="hidden" name="account" value="`...), account...), `">`...)
				from = end
			}
		}
	}
	for _, at := range links.FindAllIndex(page, -1) {
		if within(forms, at[0]) || !leads(page[:at[0]]) {
			continue
		}
		field(at[0])
		if more := carried(page[at[0]:at[1]]); more != "" {
			out = append(append(append(out, page[from:at[1]]...), more...), query...)
			from = at[1]
		}
	}
	field(len(page))
	return append(out, page[from:]...)
}

// asking are the beginnings of forms that put their fields into the address.
func asking(page []byte) (list [][]int) {
	for _, at := range tags.FindAllIndex(page, -1) {
		if bytes.Contains(page[at[0]:at[1]], []byte(`method="get"`)) {
			list = append(list, at)
		}
	}
	return list
}

// within reports whether a place is in the first of forms that does not end before it.
func within(forms [][]int, place int) bool {
	for _, f := range forms {
		if place < f[1] {
			return place > f[0]
		}
	}
	return false
}

// leads reports whether text ends with the name of an attribute that leads somewhere.
func leads(text []byte) bool {
	for _, name := range leading {
		if bytes.HasSuffix(text, name) {
			return true
		}
	}
	return false
}

// carried is what stands between a link and the account that it is to keep to; empty: it stays as it is.
func carried(link []byte) string {
	switch {
	case bytes.Contains(link, []byte(`/dashboard/assets/`)), bytes.Contains(link, []byte("account=")), bytes.Contains(link, []byte("/dashboard/sign-out")):
		return ""
	case bytes.Contains(link, []byte("?")):
		return "&amp;"
	}
	return "?"
}
