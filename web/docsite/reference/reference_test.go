package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/controlplane/gateway/openapi/importer"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/openapi"
)

// serve serves the reference of a document, which may change.
func serve(t testing.TB, document func() []byte) func(path string) *httptest.ResponseRecorder {
	t.Helper()
	site, err := docsite.New(fstest.MapFS{"quickstart.md": {Data: []byte("# Start")}}, true)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pages{Document: func(context.Context) ([]byte, error) { return document(), nil }, Site: site, Codes: decision.All()}
	site.Chapters(p.Chapter())
	r := chi.NewRouter()
	p.Routes(r, httpapi.Adapter{})
	return func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
}

func holds(t *testing.T, body string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
}

const pets = `{"servers":[{"url":"https://api.example/"}],"paths":{
"/pets":{"parameters":[{"name":"trace","in":"header","required":true,"schema":{"type":"string"}}],
 "get":{"operationId":"listPets","summary":"List pets","tags":["animals"],"x-sluice":{"product":"pets","route":"pets.list","class":"bulk"},"security":[{"key":[]},{"payment":[]}],
  "parameters":[{"name":"kind","in":"query","required":true,"description":"Which <b>kind</b>","schema":{"type":"string","enum":["a cat","dog"]}},{"$ref":"#/components/parameters/Limit"}],
  "responses":{"200":{"description":"All","content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/pets.Pet"}}}}},"default":{"$ref":"#/components/responses/Error"}}},
 "post":{"operationId":"addPet","summary":"<script>alert(1)</script>","description":"See [x](javascript:alert(1)) <script>alert(2)</script> and ` + "`code`" + `\n\n<script>\nalert(3)\n</script>","tags":["<script>"],"deprecated":true,"security":[{"session":[]}],
  "x-sluice":{"product":"pets","scope":"pets:write"},"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/pets.Pet"}}}},
  "responses":{"200":{"description":"It"}}}},
"/pets/{petId}/photo":{"put":{"operationId":"setPhoto","tags":["animals"],"x-sluice":{"product":"pets"},"security":[{}],"parameters":[{"name":"petId","in":"path","required":true,"schema":{"type":"string","example":"it's; rm -rf $HOME"}}],
  "requestBody":{"content":{"multipart/form-data":{"schema":{"type":"object","required":["file"],"properties":{"file":{"type":"string","format":"binary"},"note":{"type":"string"}}}}}},"responses":{}}}},
"components":{"parameters":{"Limit":{"name":"limit","in":"query","schema":{"type":"integer","maximum":100,"default":20}}},
"responses":{"Error":{"description":"It failed","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Error"}}}}},
"schemas":{"Error":{"type":"object"},
"pets.Pet":{"type":"object","required":["name"],"properties":{"age":{"type":["integer","null"],"minimum":0},"name":{"type":"string","maxLength":40,"description":"What it is <script>called</script>"},
 "parent":{"$ref":"#/components/schemas/pets.Pet"},"toys":{"type":"array","items":{"type":"object","properties":{"colour":{"type":"string"}}}},
 "home":{"oneOf":[{"$ref":"#/components/schemas/pets.House"},{"type":"object","title":"Tent","properties":{"poles":{"type":"integer"}}}]}}},
"pets.House":{"allOf":[{"type":"object","properties":{"street":{"type":"string"}}}]}}}}`

// ours is how the one script that pages have begins.
const ours = `<script src="/docs/assets/docs.`

func TestTheList(t *testing.T) {
	t.Parallel()
	get := serve(t, func() []byte { return []byte(pets) })
	w := get("/docs/reference")
	holds(t, w.Body.String(), `<title>API reference ·`, `<a href="/docs/reference" aria-current="page">`, `<a href="/openapi.json">`, `The 3 operations`, `<code>https://api.example</code>`,
		`<h2 id="pets-animals">pets: animals</h2>`, `<a href="/docs/reference#pets-animals">pets: animals</a> <span class="dim">2</span>`,
		`<li id="operation-listPets"><a href="/docs/reference/listPets"><code>GET /pets</code></a><br>List pets</li>`,
		`<span class="chip busy">deprecated</span><br>&lt;script&gt;alert(1)&lt;/script&gt;</li>`)
	if body := w.Body.String(); strings.Contains(strings.ReplaceAll(body, ours, ""), "<script") {
		t.Error(body)
	}
	if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Error(p)
	}
	for path, want := range map[string]int{"/docs/reference?page=1": 200, "/docs/reference?page=0": 404, "/docs/reference?page=2": 404, "/docs/reference?page=x": 404, "/docs/reference/none": 404} {
		if w := get(path); w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestThePageOfAnOperation(t *testing.T) {
	t.Parallel()
	get := serve(t, func() []byte { return []byte(pets) })
	holds(t, get("/docs/reference/listPets").Body.String(), `<h1>List pets</h1>`, `<code>GET /pets</code>`,
		`<dd>a payment of  by x402, in place of a credential; or an API key</dd>`, `<dt>Class of limits</dt><dd><code>bulk</code></dd>`, `<dt>Route</dt><dd><code>pets.list</code></dd>`,
		`curl &#39;https://api.example/pets?kind=a&#43;cat&#39; \`, `-H &#34;Authorization: Bearer $SLUICE_API_KEY&#34; \`, `-H &#39;trace: TRACE&#39;`,
		`<tr><td><code>kind</code><small>required</small></td><td>query</td><td>one of a cat, dog</td><td><p>Which &lt;b&gt;kind&lt;/b&gt;</p>`,
		`<tr><td><code>limit</code></td><td>query</td><td>integer<small>default: 20</small><small>at most 100</small></td>`,
		`<p><code>application/json</code>: array of Pet</p>`, `<code>[].name</code>`, `: <a href="/docs/errors">an error</a>`)
	body := strings.ReplaceAll(get("/docs/reference/addPet").Body.String(), ours, "")
	holds(t, body, `the session of a person`, `Bearer $SLUICE_SESSION_TOKEN`, `<code>pets:write</code>`, `-d &#39;{&#34;name&#34;:&#34;string&#34;}&#39;`, `<code>code</code>`,
		`&lt;script&gt;alert(2)&lt;/script&gt;`, `alert(3)`, `What it is &lt;script&gt;called`,
		`<tr><td><code>name</code><small>required</small></td><td>string<small>length at most 40</small></td>`,
		`<tr><td><code>age</code></td><td>integer or null<small>at least 0</small></td>`,
		`<tr><td><code>parent</code></td><td>Pet, as above</td>`, `<code>toys[].colour</code>`, `<td>House or object</td>`, `<code>home (House).street</code>`, `<code>home (Tent).poles</code>`)
	for _, never := range []string{"<script", "javascript:"} {
		if strings.Contains(body, never) {
			t.Errorf("%s in %s", never, body)
		}
	}
	holds(t, get("/docs/reference/setPhoto").Body.String(), `anybody, without a credential`,
		`curl -X PUT &#39;https://api.example/pets/it%27s%3B%20rm%20-rf%20$HOME/photo&#39; \`, `-F &#39;file=@FILE&#39;`)
}

func TestWordsOfAShell(t *testing.T) {
	t.Parallel()
	if got := quoted("it's $HOME\n`id`"); got != `'it'\''s $HOME `+"`id`'" {
		t.Error(got)
	}
	if got := filled("/a/{b}/{c}/{", map[string]string{"b": "{x}"}); got != "/a/%7Bx%7D/C/" {
		t.Error(got)
	}
}

// An operation is in the reference for as long as it is in the document.
func TestTheReferenceFollowsTheDocument(t *testing.T) {
	t.Parallel()
	now := []byte(pets)
	get := serve(t, func() []byte { return now })
	if w := get("/docs/reference/listPets"); w.Code != 200 {
		t.Fatal(w.Code)
	}
	now = []byte(strings.Replace(pets, "listPets", "listAnimals", 1))
	if gone, there := get("/docs/reference/listPets"), get("/docs/reference/listAnimals"); gone.Code != 404 || there.Code != 200 {
		t.Error(gone.Code, there.Code)
	}
}

// What importing makes of documents has a page for each of its operations, and none
// where no route is.
func TestImportedDocuments(t *testing.T) {
	t.Parallel()
	const dir = "../../../controlplane/gateway/openapi/importer/testdata/"
	for _, name := range []string{"orders.yaml", "legacy.json", "modern.yaml"} {
		open := func(path string, _ int64) ([]byte, error) { return os.ReadFile(dir + path) }
		raw, err := open(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		d, err := document.Read(raw, open)
		if err != nil {
			t.Fatal(err)
		}
		r, err := importer.Import(d, importer.Options{Upstream: "http://127.0.0.1:3000"})
		if err != nil {
			t.Fatal(err)
		}
		own, err := openapi.Join()
		if err != nil {
			t.Fatal(err)
		}
		of := func(routes []config.Route) []byte {
			s := openapi.Service{
				Latest: func(context.Context) (config.Version, error) {
					return config.Version{Document: config.Document{Products: []config.Product{r.Product}, Routes: routes}}, nil
				},
				Joined: own, Info: openapi.Info{URL: "https://gw.example"},
				Imported: func(context.Context) ([]openapi.Imported, int64, error) {
					return []openapi.Imported{{Product: r.Product.Name, Text: r.Description}}, 1, nil
				},
			}
			text, err := s.Text(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		x, err := newIndex(of(r.Routes), (&Pages{}).about(), nil)
		if err != nil {
			t.Fatal(err)
		}
		described, err := newIndex(r.Description, (&Pages{}).about(), nil)
		if err != nil || len(x.operations) == 0 || len(x.operations) != len(described.operations) {
			t.Fatalf("%s: %d of %d operations, %v", name, len(x.operations), len(described.operations), err)
		}
		for _, o := range x.operations {
			p, err := x.page(o.ID)
			if err != nil {
				t.Fatal(err)
			}
			holds(t, string(p.Body), "<code>"+o.Method+" ", "<dt>Product</dt><dd><code>"+r.Product.Name+"</code></dd>", "https://gw.example/")
		}
		less, err := newIndex(of(r.Routes[1:]), (&Pages{}).about(), nil)
		if err != nil || len(less.operations) >= len(x.operations) {
			t.Errorf("%s: a route goes, and %d operations stay, %v", name, len(less.operations), err)
		}
	}
}

// large is a document of n operations with everything at once: fields in fields, names
// of markup, and components that lead to each other.
func large(n int) []byte {
	paths, schemas := object{}, object{}
	ref := func(i int) object { return object{"$ref": fmt.Sprintf("#/components/schemas/S%d", i%n)} }
	for i := range n {
		paths[fmt.Sprintf("/things/%d", i)] = object{"post": object{
			"operationId": fmt.Sprintf("op%d", i), "summary": strings.Repeat("<", 400), "tags": []string{fmt.Sprintf("tag %d", i/30)}, "x-sluice": object{"product": "p"},
			"requestBody": object{"content": object{"application/json": object{"schema": ref(i)}}}, "responses": object{},
		}}
		properties := object{}
		for k := range 12 {
			properties[fmt.Sprintf("f%d", k)] = object{"description": strings.Repeat("<&", 100), "anyOf": []any{ref(i + k + 1), ref(i * 7), object{"type": "array", "items": ref(i + 2*k)}}}
		}
		schemas[fmt.Sprintf("S%d", i)] = object{"type": "object", "properties": properties}
	}
	text, _ := json.Marshal(object{"paths": paths, "components": object{"schemas": schemas}}) // it has nothing that JSON has not
	return text
}

// The costs that doc comments state: the index of a document is linear in it, and no page
// grows with it.
func TestCostOfDocuments(t *testing.T) {
	for _, n := range []int{300, 1200} {
		text := large(n)
		growth.Linear(t, len(text), 2, 2<<20, func() { _, _ = newIndex(text, (&Pages{}).about(), nil) })
		x, err := newIndex(text, (&Pages{}).about(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, made := range map[string]func() (int, error){
			"list":      func() (int, error) { p, err := x.list(1); return len(p.Body), err },
			"operation": func() (int, error) { p, err := x.page("op7"); return len(p.Body), err },
		} {
			size := 0
			growth.Linear(t, 0, 0, 16<<20, func() {
				if size, err = made(); err != nil {
					t.Fatal(err)
				}
			})
			if size < 20<<10 || size > maxPage {
				t.Errorf("%d operations: the %s has %d bytes", n, name, size)
			}
		}
		last, err := x.list((n + listed - 1) / listed)
		if err != nil || !strings.Contains(string(last.Body), `rel="prev"`) || strings.Contains(string(last.Body), `rel="next"`) {
			t.Error(n, err)
		}
	}
}

// What is kept for the next reader is bounded.
func TestKeptPages(t *testing.T) {
	t.Parallel()
	text := large(60)
	p := &Pages{}
	for i := range 60 {
		if _, err := p.page(text, fmt.Sprint(i), func(x *index) (docsite.Page, error) { return x.page(fmt.Sprintf("op%d", i)) }); err != nil {
			t.Fatal(err)
		}
		if p.size > maxKept {
			t.Fatal(p.size)
		}
	}
	if len(p.kept) == 0 || len(p.kept) == 60 {
		t.Error(len(p.kept))
	}
}

// Whatever a document says, its pages are made, bounded, and without a script.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(pets))
	f.Add([]byte(`{"paths":{"/":{"get":{"parameters":[0,{"name":"x","schema":true}],"responses":{"x":null,"y":{"content":{"a":{"schema":{"type":[],"items":{"$ref":"#/components/schemas/A"}}}}}}}}},"components":{"schemas":{"A":{"$ref":"#/components/schemas/A"}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := newIndex(text, (&Pages{}).about(), nil)
		if err != nil {
			return
		}
		for _, o := range x.operations[:min(len(x.operations), 20)] {
			p, err := x.page(o.ID)
			if err != nil || len(p.Body) > maxPage+8*len(text) || bytes.Contains(bytes.ToLower([]byte(p.Body)), []byte("<script")) {
				t.Errorf("%d bytes, %v: %s", len(p.Body), err, p.Body)
			}
		}
		if _, err := x.list(1); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkReference(b *testing.B) {
	for _, n := range []int{300, 1200, 4800} {
		text := large(n)
		x, err := newIndex(text, (&Pages{}).about(), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("index/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = newIndex(text, (&Pages{}).about(), nil)
			}
		})
		b.Run(fmt.Sprintf("list/%d", n), func(b *testing.B) {
			for b.Loop() {
				_, _ = x.list(1)
			}
		})
		b.Run(fmt.Sprintf("operation/%d", n), func(b *testing.B) {
			for b.Loop() {
				_, _ = x.page("op7")
			}
		})
	}
}
