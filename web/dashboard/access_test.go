package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/platform/http/paging"
)

// Who may see what: the operator everything, the people of an account their own,
// by their scopes.
func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if len(b.known(t.Context(), t)) < 10 {
		t.Fatal("the scopes are not there")
	}
	operator, colleague := b.operator(t), b.person(t, b.seeded.Account, "colleague@example.com", accounts.Member)
	owner := b.person(t, "", "owner@example.com", accounts.Owner)
	stranger := b.visitor()
	for path, c := range map[string]struct{ operator, colleague, owner int }{
		"":             {200, 200, 200},
		"/edges":       {200, 403, 403},
		"/requests":    {200, 200, 200},
		"/routes":      {200, 403, 403},
		"/config":      {200, 403, 403},
		"/config/1":    {200, 403, 403},
		"/keys":        {200, 200, 200},
		"/usage":       {200, 200, 200},
		"/people":      {200, 200, 200},
		"/access":      {200, 200, 200},
		"/billing":     {200, 200, 200},
		"/apps":        {200, 403, 403},
		"/accounts":    {200, 403, 403},
		"/schedules":   {200, 200, 200},
		"/webhooks":    {200, 200, 200},
		"/payments":    {200, 403, 403},
		"/audit":       {200, 403, 200},
		"/nothing":     {404, 404, 404},
		"/config/none": {404, 403, 403},
		"/config/99":   {404, 403, 403},
	} {
		for name, who := range map[string]struct {
			*visitor
			want int
		}{"operator": {operator, c.operator}, "a member of its account": {colleague, c.colleague}, "an owner elsewhere": {owner, c.owner}} {
			got := who.get(Root + path)
			if got.Code != who.want {
				t.Errorf("%s, %s: %d, want %d: %s", path, name, got.Code, who.want, got.body)
			}
			if h := got.Header(); h.Get("Content-Security-Policy") != policy && got.Code == 200 || h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s: %v", path, h)
			}
		}
		if got := stranger.get(Root + path); path != "/nothing" && (got.Code != 303 || !strings.HasPrefix(got.Header().Get("Location"), Root+"/sign-in?next=")) {
			t.Errorf("%s, a stranger: %d %v", path, got.Code, got.Header())
		}
	}
}

// The menu leads to nothing that is then refused.
func TestTheMenuFitsWhoLooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		who  *visitor
		want string
	}{
		"operator": {b.operator(t), "Overview Requests Edges Routes Configuration Accounts Payments Audit Keys People Limits and allowlist OAuth apps Usage Billing Streams Schedules Webhooks"},
		"owner":    {b.person(t, "", "o@example.com", accounts.Owner), "Overview Requests Keys People Limits and allowlist Usage Billing Streams Schedules Webhooks Audit"},
		"member":   {b.person(t, "", "m@example.com", accounts.Member), "Overview Requests Keys People Limits and allowlist Usage Billing Streams Schedules Webhooks"},
	} {
		page, _, _ := strings.Cut(c.who.get(Root).body, "</nav>")
		var names []string
		for _, link := range strings.Split(page, "<li><a ")[1:] {
			_, text, _ := strings.Cut(link, ">")
			text, _, _ = strings.Cut(text, "<")
			names = append(names, text)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestOnlyOperatorsChooseAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := b.person(t, "", "owner@example.com", accounts.Owner)
	for _, path := range []string{"/keys", "/usage", "/schedules", "/webhooks", "/people", "/access", "/billing", "/webhooks/new", "/people/new", "/billing/plan"} {
		if got := owner.get(Root + path + "?account=" + b.seeded.Account); got.Code != 404 {
			t.Errorf("%s of another account: %d", path, got.Code)
		}
	}
	list, _, err := paging.Rows(accounts.Store{DB: b.db}.Page(t.Context(), pageOf(&http.Request{URL: &url.URL{}})))
	if err != nil || list[0].Name != "Acme" {
		t.Fatal(list, err)
	}
	if got := b.operator(t).get(Root + "/keys?account=" + list[0].ID); got.Code != 200 || !strings.Contains(got.body, "Acme has no keys") {
		t.Error(got.Code, got.body)
	}
	if got := b.operator(t).get(Root + "/keys?account=acct_0000000000000"); got.Code != 404 {
		t.Error(got.Code)
	}
}

func TestSigningIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visitor()
	token := v.get(Root + "/sign-in?next=" + url.QueryEscape(Root+"/edges")).token(t)
	form := func(pairs ...string) url.Values {
		f := url.Values{"token": {token}, "email": {b.seeded.Email}, "password": {b.seeded.Password}, "next": {Root + "/edges?a=b"}}
		for i := 0; i+1 < len(pairs); i += 2 {
			f.Set(pairs[i], pairs[i+1])
		}
		return f
	}
	for name, c := range map[string]struct {
		form    url.Values
		headers []string
		want    int
		text    string
	}{
		"wrong password":     {form("password", "wrong"), nil, 401, "The e-mail address or the password is wrong."},
		"nobody":             {form("email", `"><script>@example.com`), nil, 401, "The e-mail address or the password is wrong."},
		"endless password":   {form("password", strings.Repeat("a", 9000)), nil, 401, "is wrong"},
		"endless form":       {form("password", strings.Repeat("a", formLimit)), nil, 400, "cannot be read"},
		"no token":           {form("token", ""), nil, 400, "has expired"},
		"from another site":  {form(), []string{"Sec-Fetch-Site", "cross-site"}, 400, "has expired"},
		"from a sibling":     {form(), []string{"Origin", "http://evil.example"}, 400, "has expired"},
		"not a form":         {form(), []string{"Content-Type", "text/plain"}, 400, "has expired"},
		"right":              {form(), nil, 303, ""},
		"right, to a trap":   {form("next", "https://evil.example/dashboard"), nil, 303, ""},
		"right, to slashes":  {form("next", "//evil.example"), nil, 303, ""},
		"right, to a cousin": {form("next", "/dashboard.evil"), nil, 303, ""},
	} {
		got := v.post(Root+"/sign-in", c.form, c.headers...)
		if got.Code != c.want || !strings.Contains(got.body, c.text) || strings.Contains(got.body, "<script>@") {
			t.Errorf("%s: %d %s", name, got.Code, got.body)
		}
		want := Root
		if name == "right" {
			want += "/edges?a=b"
		}
		if to := got.Header().Get("Location"); c.want == 303 && to != want {
			t.Errorf("%s: leads to %s", name, to)
		}
	}
	if got := v.get(Root + "/sign-in"); got.Code != 303 {
		t.Errorf("whoever is signed in is asked again: %d", got.Code)
	}
}

func TestTooManyAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visitor()
	form := url.Values{"token": {v.get(Root + "/sign-in").token(t)}, "email": {b.seeded.Email}, "password": {"wrong"}}
	for range 10 {
		v.post(Root+"/sign-in", form)
	}
	if got := v.post(Root+"/sign-in", form); got.Code != 429 || got.Header().Get("Retry-After") == "" || !strings.Contains(got.body, `role="alert"`) {
		t.Fatal(got.Code, got.Header(), got.body)
	}
}

// Each form wants the token of the session that it was given to.
func TestForgedFormsDoNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	operator, other := b.operator(t), b.operator(t)
	theirs := other.get(Root + "/keys").token(t)
	paths := []string{"/sign-out"}
	for _, sec := range sections {
		for path := range sec.post {
			paths = append(paths, strings.NewReplacer("{id}", "x", "{number}", "1", "{version}", "1", "{kind}", "routes", "{name}", "x", "{class}", "x").Replace(path))
		}
	}
	if len(paths) < 6 {
		t.Fatal(paths)
	}
	for _, path := range paths {
		for _, token := range []string{"", theirs} {
			if got := operator.post(Root+path, url.Values{"token": {token}}); got.Code != 400 || !strings.Contains(got.body, "has expired") {
				t.Errorf("%s with %q: %d %s", path, token, got.Code, got.body)
			}
		}
	}
	if got := operator.get(Root + "/keys"); got.Code != 200 {
		t.Error("a forged form signed the operator out")
	}
}

func TestSigningOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	session := *v.cookies["sluice-dashboard-session"]
	if !session.HttpOnly || session.SameSite != http.SameSiteStrictMode || session.Path != Root {
		t.Errorf("%+v", session)
	}
	if got := v.send(t, Root, Root+"/sign-out"); got.Code != 303 || v.cookies["sluice-dashboard-session"] != nil {
		t.Fatal(got.Code, v.cookies)
	}
	v.cookies[session.Name] = &session // as a thief has it
	if got := v.get(Root); got.Code != 303 {
		t.Errorf("the session still opens the dashboard: %d", got.Code)
	}
}

func TestTheRootLeadsToTheDashboard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if got := b.visitor().get("/"); got.Code != 303 || got.Header().Get("Location") != Root {
		t.Error(got.Code, got.Header())
	}
}

// The pages' files are there.
func TestFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	page := b.operator(t).get(Root).body
	for _, name := range []string{"app.css", "icon.svg", "live.js"} {
		if path := files.Path(name); !strings.Contains(page, path) || b.visitor().get(path).Code != 200 {
			t.Errorf("%s is not on the page, or not there", path)
		}
	}
	if got := b.visitor().get(Root + "/assets/app.css"); got.Code != 404 {
		t.Error(got.Code)
	}
}

// A dashboard of a deployment without products has no pages of theirs.
func TestSectionsWithoutProducts(t *testing.T) {
	t.Parallel()
	names := func(s *site) (list []string) {
		for _, sec := range s.sections() {
			list = append(list, sec.Name)
		}
		return list
	}
	all, alone := names(&site{}), names(&site{Config: Config{Alone: true}})
	if len(all) != len(sections) || len(alone) != len(all)-3 || slices.Contains(alone, "Schedules") || slices.Contains(alone, "Payments") || slices.Contains(alone, "Streams") {
		t.Errorf("%q %q", all, alone)
	}
}
