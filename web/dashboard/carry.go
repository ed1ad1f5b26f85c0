package dashboard

import (
	"bytes"
	"net/url"
	"regexp"
)

// link matches the attributes of a page that lead to the dashboard, and the beginnings
// of forms that put their fields into the address. Nothing that users write looks like
// that: the templates escape its quotes.
var link = regexp.MustCompile(`(?:href|action|data-live)="/dashboard[^"#]*|<form [^>]*method="get"[^>]*>`)

// carry returns a page, or a part of one, on which every link and every form keeps to an
// account: the one that an operator has chosen, and not their own. It is done to the page as
// a whole, so that no template can forget it. What names an account already stays as it is.
// The cost is linear in the page.
func carry(page []byte, account string) []byte {
	if account == "" {
		return page
	}
	query := url.Values{"account": {account}}.Encode()
	return link.ReplaceAllFunc(page, func(at []byte) []byte {
		switch {
		case bytes.HasPrefix(at, []byte("<form")):
			if bytes.Contains(at, []byte("data-own")) { // it chooses an account
				return at
			}
			return append(at[:len(at):len(at)], []byte(`<input type="hidden" name="account" value="`+account+`">`)...)
		case bytes.Contains(at, []byte(`/dashboard/assets/`)), bytes.Contains(at, []byte("account=")), bytes.Contains(at, []byte("/dashboard/sign-out")):
			return at
		case bytes.Contains(at, []byte("?")):
			return append(at[:len(at):len(at)], []byte("&amp;"+query)...)
		}
		return append(at[:len(at):len(at)], []byte("?"+query)...)
	})
}
