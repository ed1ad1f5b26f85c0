package dashboard

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// version is the newest configuration.
func (b *bundle) version(t *testing.T) config.Version {
	t.Helper()
	now, err := b.Documents.Store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="(version|shown)" value="([^"]*)">`)

// publish sends a form as it was shown, to publish it.
func (v *visitor) publish(t *testing.T, shown answer, action string, fields ...string) answer {
	t.Helper()
	for _, m := range hiddenInput.FindAllStringSubmatch(shown.body, -1) {
		fields = append(fields, m[1], m[2])
	}
	return v.send(t, Root+"/routes", action, append(fields, "do", "publish")...)
}

// A route is shown as a difference before it is published, and published as it was shown.
func TestPublishingARoute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, page := b.operator(t), Root+"/routes/new/routes"
	typed := []string{"name", "orders", "path", "/v1/orders/{id}", "methods", "GET, POST", "product", "api", "auth", "key", "auth", "token", "scope", "streams:read", "timeout", "5s",
		"more", `{"retries": {"attempts": 1}}`, "note", "orders <b>"}
	shown := v.send(t, page, page, append(typed, "version", "1", "do", "go")...)
	for _, want := range []string{`<code>routes.orders</code>`, "Nothing is published yet", `value="publish">Publish`, `value="/v1/orders/{id}"`, `value="key" checked`} {
		if !strings.Contains(shown.body, want) {
			t.Errorf("no %s in %s", want, shown.body)
		}
	}
	if got := v.send(t, page, page, append(typed, "version", "1", "do", "publish")...); got.Code != 200 || !strings.Contains(got.body, "Nothing is published yet") {
		t.Errorf("what was never shown is published: %d %s", got.Code, got.body)
	}
	other := append([]string{}, typed...)
	other[3] = "/v1/other"
	if got := v.publish(t, shown, page, other...); got.Code != 200 || b.version(t).Number != 1 {
		t.Errorf("something else than was shown is published: %d %s", got.Code, got.body)
	}
	if got := v.send(t, page, page, append(typed, "version", "1", "do", "rehearse")...); got.Code != 200 || !strings.Contains(got.body, "Nothing would become of any of them") {
		t.Error(got.Code, got.body)
	}
	if got := v.publish(t, shown, page, typed...); got.Code != 303 || got.Header().Get("Location") != Root+"/config/2?done=published" {
		t.Fatal(got.Code, got.Header(), got.body)
	}
	now := b.version(t)
	found, ok := now.Document.Find("routes", "orders")
	if route, _ := found.(config.Route); !ok || route.Path != "/v1/orders/{id}" || len(route.Methods) != 2 || len(route.Auth) != 2 || route.Retries == nil ||
		!strings.HasPrefix(now.Author, "sess_") || now.Note != "orders <b>" {
		t.Errorf("%+v by %s: %s", found, now.Author, now.Note)
	}
	if got := v.get(Root + "/routes/routes/orders"); !strings.Contains(got.body, `value="GET, POST"`) || !strings.Contains(got.body, "&#34;retries&#34;") {
		t.Error(got.body)
	}
	if got := v.send(t, page, page, append(typed, "version", "2")...); !strings.Contains(got.body, "exists already") {
		t.Error(got.body)
	}
}

// Of two who edit the same, the second sees what the first has done before it is replaced.
func TestTwoEditorsDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second, page := b.operator(t), b.operator(t), Root+"/routes/classes/default"
	one, two := []string{"per_minute", "700"}, []string{"per_minute", "800"}
	shownFirst, shownSecond := first.send(t, page, page, append(one, "version", "1")...), second.send(t, page, page, append(two, "version", "1")...)
	if got := first.publish(t, shownFirst, page, one...); got.Code != 303 {
		t.Fatal(got.Code, got.body)
	}
	late := second.publish(t, shownSecond, page, two...)
	if late.Code != 200 || !strings.Contains(late.body, "Somebody has published another version") || !strings.Contains(late.body, `value="800"`) ||
		strings.Contains(late.body, `value="publish"`) || b.version(t).Number != 2 {
		t.Fatal(late.Code, late.body)
	}
	again := second.send(t, page, page, append(two, "version", "2")...)
	if !strings.Contains(again.body, ">700</pre>") || !strings.Contains(again.body, ">800</pre>") {
		t.Error(again.body)
	}
	if got := second.publish(t, again, page, two...); got.Code != 303 || b.version(t).Document.Classes[0].PerMinute != 800 {
		t.Error(got.Code, got.body)
	}
}

// What the API finds wrong stands beside its input.
func TestFaultsOfObjects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	for name, c := range map[string]struct {
		page   string
		fields []string
		want   []string
	}{
		"a route": {"/routes/new/routes", []string{"name", "x", "path", "no slash", "methods", "get", "auth", "key", "timeout", "soon", "product", "api"},
			[]string{"<code>path</code>", "<code>methods[0]</code>", "<code>timeout</code>"}},
		"a name":          {"/routes/new/routes", []string{"name", "Über", "path", "/x", "product", "api"}, []string{"<code>name</code>"}},
		"no JSON":         {"/routes/new/routes", []string{"name", "x", "path", "/x", "product", "api", "more", "{"}, []string{"is not a JSON object", ">\n{</textarea>"}},
		"twice":           {"/routes/new/routes", []string{"name", "x", "path", "/x", "product", "api", "more", `{"path":"/y"}`}, []string{"has path, which has an input of its own"}},
		"unknown":         {"/routes/new/routes", []string{"name", "x", "path", "/x", "product", "api", "more", `{"colour":"red"}`}, []string{"colour"}},
		"a class":         {"/routes/new/classes", []string{"name", "x", "per_minute", "many"}, []string{"is not a whole number", `value="many"`}},
		"a class of 2^40": {"/routes/new/classes", []string{"name", "x", "per_minute", "1099511627776"}, []string{"<code>per_minute</code>"}},
		"a product":       {"/routes/new/products", []string{"name", "x", "upstreams", "10.0.0.1:80 two"}, []string{"is not an address and a weight"}},
		"a plan":          {"/routes/new/plans", []string{"name", "x", "price.monthly", "ten", "price.currency", "euro"}, []string{"<code>price.monthly</code>", "<code>price.currency</code>"}},
	} {
		got := v.send(t, Root+c.page, Root+c.page, append(c.fields, "version", "1")...)
		for _, want := range c.want {
			if got.Code != 200 || !strings.Contains(got.body, want) {
				t.Errorf("%s: %d, no %s in %s", name, got.Code, want, got.body)
			}
		}
		if b.version(t).Number != 1 {
			t.Fatalf("%s is published", name)
		}
	}
}

// The form of an object says all of it: sent as it is, it changes nothing.
func TestFormsOfObjectsLoseNothing(t *testing.T) {
	t.Parallel()
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	d, _ = d.Expand(config.ProfilePlatform)
	two := uint32(2)
	d.Products = append(d.Products, config.Product{Name: "rich", Upstreams: []config.Upstream{{Address: "a:1", Weight: 2}, {Address: "b:2"}}, Retries: &two, TLS: &config.TLS{ServerName: "x"}})
	d.Plans = append(d.Plans, config.Plan{Name: "rich", Limits: map[string]config.Limit{d.Classes[0].Name: {PerMinute: 5, Burst: 2}}, Price: &config.PlanPrice{Currency: "EUR", Monthly: "1.00",
		Units: map[string]config.UnitPrice{"requests": {Amount: "0.4", Per: 1000}}}, Tokens: &config.TokenBudget{Daily: 5}, Quota: &config.Quota{Requests: 9}})
	count := 0
	for kind, list := range map[string][]any{"routes": every(d.Routes), "products": every(d.Products), "plans": every(d.Plans), "classes": every(d.Classes)} {
		for _, all := range []bool{true, false} {
			for _, one := range list {
				object, err := members(one)
				if err != nil {
					t.Fatal(err)
				}
				delete(object, "name")
				want, _ := json.Marshal(object)
				raw, err := readObject(&form{Fields: objectInputs(kind, d, all, object)}, kind, d, all)
				if err != nil || string(raw) != string(want) {
					t.Errorf("%s: %s, want %s: %v", kind, raw, want, err)
				}
				count++
			}
		}
	}
	if count < 100 {
		t.Fatal(count)
	}
}

func every[T any](list []T) (out []any) {
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

// An object is deleted after its name is typed, and only if nothing needs it.
func TestDeletingObjects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, page := b.operator(t), Root+"/routes/classes/spare/delete"
	d := b.version(t).Document
	d.Classes = append(d.Classes, config.Class{Name: "spare", PerMinute: 5})
	if _, err := b.Documents.Store.Put(t.Context(), d, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	if got := v.get(page); got.Code != 200 || !strings.Contains(got.body, "<code>classes.spare</code>") {
		t.Fatal(got.Code, got.body)
	}
	if got := v.send(t, page, page, "confirm", "default", "version", "2"); got.Code != 200 || b.version(t).Number != 2 {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page, page, "confirm", "spare", "version", "1"); got.Code != 200 || !strings.Contains(got.body, "The configuration is at version 2") || b.version(t).Number != 2 {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page, page, "confirm", "spare", "version", "2"); got.Code != 303 || b.version(t).Number != 3 {
		t.Error(got.Code, got.body)
	}
	needed := Root + "/routes/products/api/delete"
	if got := v.send(t, needed, needed, "confirm", "api", "version", "3"); got.Code != 200 || !strings.Contains(got.body, "product") || b.version(t).Number != 3 {
		t.Error(got.Code, got.body)
	}
	if got := v.get(Root + "/routes/nothing"); got.Code != 404 {
		t.Error(got.Code)
	}
}

// A plan is offered to customers, and no longer.
func TestOfferingPlans(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, list := b.operator(t), Root+"/routes/plans"
	if got := v.send(t, list, list+"/enterprise/offer", "offer", "yes"); got.Code != 303 || !strings.Contains(v.get(list).body, " offering enterprise</span>") {
		t.Error(got.Code, v.get(list).body)
	}
	if e := b.audited(t, "enterprise"); e.Action != "plan.offer" {
		t.Errorf("%+v", e)
	}
	if got := v.send(t, list, list+"/enterprise/offer", "offer", "no"); got.Code != 303 || !strings.Contains(v.get(list).body, `Offer<span class="hide"> enterprise</span>`) {
		t.Error(got.Code, got.body)
	}
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	if got := owner.get(list); got.Code != 403 {
		t.Error(got.Code)
	}
}

// Without products of the platform the forms say nothing of them.
func TestFormsOfAGateway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Alone = true
	b.Config.Webhooks.Groups = []string{"webhook", "test", "billing"}
	b.serve()
	d, err := config.DefaultOf(config.ProfileGateway)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Documents.Store.Put(t.Context(), d, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	v := b.operator(t)
	for _, path := range []string{"/routes", "/routes/new/routes", "/routes/new/plans", "/routes/new/products", "/routes/new/classes", "/webhooks/new"} {
		got := v.get(Root + path)
		_, main, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(got.body), "retry_schedule", ""), "<main")
		for _, word := range []string{"chat", "x402", " stream", "/streams", "stream.", "media_", "token of", "schedule"} {
			if strings.Contains(main, word) {
				t.Errorf("%s speaks of %q", path, word)
			}
		}
		if got.Code != 200 {
			t.Error(path, got.Code)
		}
	}
}
