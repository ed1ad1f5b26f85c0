package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// operator walks the dashboard with a browser's cookies.
type operator struct {
	*http.Client
	base string
}

// visitor is someone who has not signed in yet.
func (s *stack) visitor(t testing.TB) operator {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return operator{&http.Client{Jar: jar, Timeout: patience}, s.dev["SLUICE_ADMIN_URL"]}
}

// page follows a link. Every page has its policy, and may not be kept or framed.
func (p operator) page(t testing.TB, path string) (body string, at *url.URL) {
	t.Helper()
	r, err := p.Get(p.base + path)
	if err != nil {
		t.Fatal(err)
	}
	return held(t, r)
}

// submit sends the form on a page whose action is given, with more fields.
func (p operator) submit(t testing.TB, page, action string, fields url.Values) (body string, at *url.URL) {
	t.Helper()
	form, ok := formOf(page, action)
	if !ok {
		t.Fatalf("there is no form that leads to %s", action)
	}
	for name, values := range fields {
		form[name] = values
	}
	r, err := p.PostForm(p.base+action, form)
	if err != nil {
		t.Fatal(err)
	}
	return held(t, r)
}

var (
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)
	inline      = regexp.MustCompile(`(?i)<style|<script>|\sstyle=|\son[a-z]+=|(src="|<link[^>]*href=")https?:`)
)

// formOf returns the hidden fields of the form with an action.
func formOf(page, action string) (url.Values, bool) {
	_, form, ok := strings.Cut(page, `method="post" action="`+action+`"`)
	form, _, _ = strings.Cut(form, "</form>")
	v := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(form, -1) {
		v.Set(m[1], m[2])
	}
	return v, ok
}

// held reads a page and holds it to what all have.
func held(t testing.TB, r *http.Response) (string, *url.URL) {
	t.Helper()
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	where := r.Request.URL
	if r.StatusCode != 200 {
		t.Fatalf("%s: %d %s", where, r.StatusCode, b)
	}
	policy := r.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("%s: policy %s", where, policy)
	}
	if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%s: %v", where, r.Header)
	}
	if found := inline.FindString(string(b)); found != "" {
		t.Errorf("%s: the page has %s in it", where, found)
	}
	return string(b), where
}

// enter signs the stack's owner in.
func (s *stack) enter(t testing.TB) operator {
	t.Helper()
	p := s.visitor(t)
	page, at := p.page(t, "/")
	if at.Path != "/dashboard/sign-in" {
		t.Fatalf("a stranger lands on %s", at)
	}
	if _, at = p.submit(t, page, "/dashboard/sign-in", url.Values{"email": {s.dev["SLUICE_USER_EMAIL"]}, "password": {s.dev["SLUICE_USER_PASSWORD"]}}); at.Path != "/dashboard" {
		t.Fatalf("signing in leads to %s", at)
	}
	return p
}

// dashboardStack is the shared stack with something to show in every list.
func dashboardStack(t testing.TB) *stack {
	t.Helper()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	hook := call(t, "POST", s.url("/v1/webhooks"), key, map[string]any{"url": "https://receiver.example/hook", "events": []string{"stream.*"}, "secret": "a secret of the tests"})
	wantStatus(t, hook, 201)
	keepSecret("webhook secret", "a secret of the tests")
	schedule := call(t, "POST", s.url("/v1/events/schedules"), key, map[string]any{"name": "every hour " + t.Name(), "type": "custom",
		"schedule": map[string]any{"type": "recurring", "cron": "0 * * * *", "timezone": "UTC"}})
	wantStatus(t, schedule, 201)
	t.Cleanup(func() {
		call(t, "DELETE", s.url("/v1/webhooks/"+into[struct{ ID string }](t, hook).ID), key, nil)
		call(t, "DELETE", s.url("/v1/events/schedules/"+into[struct{ ID string }](t, schedule).ID), key, nil)
	})
	return s
}

// dashboardDetails are pages below those of the menu.
func dashboardDetails(t testing.TB, s *stack) (paths []string) {
	t.Helper()
	p := s.enter(t)
	for _, list := range []string{"config", "keys", "schedules", "webhooks"} {
		page, _ := p.page(t, "/dashboard/"+list)
		link := regexp.MustCompile(`href="(/dashboard/` + list + `/[^"]+)"`).FindStringSubmatch(page)
		if link == nil {
			t.Fatalf("nothing on /dashboard/%s leads on", list)
		}
		paths = append(paths, strings.ReplaceAll(link[1], "&amp;", "&"))
	}
	return paths
}

// The owner of the stack signs in and walks over every page; none of them shows
// a secret.
func TestDashboardWalk(t *testing.T) {
	s := dashboardStack(t)
	p := s.enter(t)
	home, _ := p.page(t, "/dashboard")
	menu := regexp.MustCompile(`<li><a href="(/dashboard[^"]*)"`).FindAllStringSubmatch(home, -1)
	if len(menu) < 10 {
		t.Fatalf("the menu has %d entries", len(menu))
	}
	paths := dashboardDetails(t, s)
	for _, m := range menu {
		paths = append(paths, m[1])
	}
	for _, path := range paths {
		body, _ := p.page(t, path)
		for name, value := range s.dev {
			if isSecret(name) && strings.Contains(body, value) {
				t.Errorf("%s shows %s", path, name)
			}
		}
		if strings.Contains(body, "a secret of the tests") {
			t.Errorf("%s shows the secret of a webhook", path)
		}
	}
	edges, _ := p.page(t, "/dashboard/edges")
	if !strings.Contains(edges, "edge-1") || !strings.Contains(edges, ">current<") {
		t.Error("the edge is not on its page")
	}
}

// A key that is made on the page works at the edge, and not any more once it is
// revoked there.
func TestDashboardKeys(t *testing.T) {
	s := theStack(t)
	p := s.enter(t)
	page, _ := p.page(t, "/dashboard/keys")
	page, _ = p.submit(t, page, "/dashboard/keys", url.Values{"name": {"from the page"}, "scopes": {"streams:read"}, "days": {"7"}})
	text := regexp.MustCompile(`slk_([0-9a-z]{13})_[0-9A-Za-z]+`).FindStringSubmatch(page)
	if text == nil {
		t.Fatal("the page does not show the key")
	}
	keepSecret("key", text[0])
	eventually(t, "the key works", func() error { return wantCode(s, text[0], 200) })
	list, _ := p.page(t, "/dashboard/keys")
	one, _ := p.page(t, "/dashboard/keys/key_"+text[1])
	if strings.Contains(list, text[0]) || strings.Contains(one, text[0]) {
		t.Fatal("the key is shown again")
	}
	revoke := "/dashboard/keys/key_" + text[1] + "/revoke"
	confirm, _ := p.page(t, revoke)
	if _, at := p.submit(t, confirm, revoke, url.Values{"confirm": {"from the page"}}); at.Query().Get("done") != "revoked" {
		t.Fatal(at)
	}
	eventually(t, "the key is refused", func() error { return wantCode(s, text[0], 401) })
}

// wantCode fails unless a key gets a status.
func wantCode(s *stack, key string, status int) error {
	r, err := try("GET", s.url("/v1/streams"), key, nil)
	if err == nil && r.StatusCode != status {
		err = errStatus(r.StatusCode)
	}
	return err
}

// errStatus is a status that was not wanted.
type errStatus int

func (e errStatus) Error() string { return http.StatusText(int(e)) }

// Signing out ends the session, and forms of another session do nothing.
func TestDashboardSessions(t *testing.T) {
	s := theStack(t)
	p, other := s.enter(t), s.enter(t)
	page, _ := p.page(t, "/dashboard/keys")
	stolen, _ := formOf(page, "/dashboard/keys")
	stolen.Set("name", "stolen")
	r, err := other.PostForm(other.base+"/dashboard/keys", stolen)
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != 400 {
		t.Errorf("a form of another session: %d", r.StatusCode)
	}
	if _, at := p.submit(t, page, "/dashboard/sign-out", nil); at.Path != "/dashboard/sign-in" {
		t.Error(at)
	}
	if _, at := p.page(t, "/dashboard/edges"); at.Path != "/dashboard/sign-in" {
		t.Errorf("whoever has signed out sees %s", at)
	}
}
