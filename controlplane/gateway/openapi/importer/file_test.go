package importer

import (
	"strings"
	"testing"
)

const byHand = `# our gateway
classes:
  - {name: default, per_minute: 60} # slow

scopes:
  - hand:made  # mine
  - "old:one"
products:
  # the shop
  - name: shop
    upstream: http://127.0.0.1:1
  - name: simple-api
    upstreams: [{address: "127.0.0.1:2", weight: 3}]  # two of them soon
routes:
  # by hand
  - {name: shop, path: /shop/*, product: shop, scope: hand:made}
  # stale group
  - name: simple-api.gone
    path: /gone
    product: simple-api
    scope: old:one
  - {name: simple-api.op0, methods: [GET], path: /was, product: simple-api, timeout: 5s, hosts: [a.example]}

  # the last one
  - name: last
    path: /last
    product: shop
    auth: [none]
# the end
`

// An import changes its own product and routes, keeps what it cannot say of them, and
// leaves everything else in the file as it is.
func TestAFileByHandKeepsWhatIsNotImported(t *testing.T) {
	t.Parallel()
	r, err := Import(simple(t, `get /a {"tags":["things"],"security":[{"o":["new:one"]}]}`, `put /a {"x-sluice-class":"bulk"}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Update([]byte(byHand), r)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"# slow\n", "# slow\n  - name: bulk\n    per_minute: 600\n",
		`  - "old:one"`+"\n", "  - new:one\n",
		`  # stale group
  - name: simple-api.gone
    path: /gone
    product: simple-api
    scope: old:one
  - {name: simple-api.op0, methods: [GET], path: /was, product: simple-api, timeout: 5s, hosts: [a.example]}

`, `  - name: simple-api.op1
    methods: [PUT]
    path: /a
    product: simple-api
    auth: [key]
    class: bulk
  # things
  - name: simple-api.op0
    hosts: [a.example]
    methods: [GET]
    path: /a
    product: simple-api
    auth: [key, token]
    scope: new:one
    timeout: 5s
`).Replace(byHand)
	if string(got) != want {
		t.Errorf("%s", got)
	}
	valid(t, got)
	again, err := Update(got, r)
	if err != nil || string(again) != string(got) {
		t.Errorf("the same import again: %v\n%s", err, again)
	}
}

func TestListsOnOneLineAreWrittenAnew(t *testing.T) {
	t.Parallel()
	r, err := Import(simple(t, `get /a {"security":[{"o":["new:one"]}]}`), Options{Upstream: "https://a.example/base"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Update([]byte("scopes: [x:y]\nroutes: []\nproducts: []\n"), r)
	if err != nil {
		t.Fatal(err)
	}
	c := valid(t, got)
	if c.Scopes[0] != "x:y" || c.Scopes[1] != "new:one" || c.Routes[0].Rewrite.Path != "/base/a" || c.Products[0].TLS == nil {
		t.Errorf("%s", got)
	}
}

func TestFilesThatCannotBeEdited(t *testing.T) {
	t.Parallel()
	r, err := Import(simple(t, "get /a"), Options{Upstream: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"routes":[]}`, "routes: 5\n", "a: [", "colour: red\n"} {
		if got, err := Update([]byte(text), r); err == nil {
			t.Errorf("%q became %s", text, got)
		}
	}
}
