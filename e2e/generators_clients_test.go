//go:build clients

package e2e

// What generators of clients make of the OpenAPI documents is compiled as strictly as
// its language can, and calls every list and every create of a running stack. Needs
// Node, npm, Python and Java.

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// generated is a document, and what generated clients call of it.
type generated struct {
	name, base, key string
	way             string // how key lets in: the operations whose route takes it first
	file            string
	calls           []generatedCall
	want            map[string]int // statuses of plain requests, by operationId
}

// generatedCall is an operation without a variable in its path.
type generatedCall struct {
	ID     string          `json:"id"`
	Schema string          `json:"schema"` // name of the body's
	Body   json.RawMessage `json:"body"`   // the document's example; null: none
	Method string          `json:"-"`
	Path   string          `json:"-"`
}

// generators make a client of the document at $DOC in the folder $OUT, compile it, and
// run it with BASE, KEY and CALLS. $TOOLS is where they are installed.
var generators = []struct{ name, script string }{
	{"oapi-codegen", `printf 'package: main\ngenerate: {models: true, client: true}\n' > oapi.yaml
(cd "$TOOLS" && go tool oapi-codegen -config "$OUT/oapi.yaml" -o "$OUT/api.go" "$DOC") 1>&2
cp "$TOOLS/oapi-codegen.go.txt" main.go && go build -o client . 1>&2 && ./client`},
	{"openapi-generator go", `generate go --additional-properties=packageName=main,withGoMod=false
rm -rf test && cp "$TOOLS/openapi-generator.go.txt" main.go && go build -o client . 1>&2 && ./client`},
	{"openapi-generator typescript-fetch", `generate typescript-fetch --additional-properties=importFileExtension=.js
echo '{"type":"module"}' > package.json
tsc --strict --target es2022 --module es2022 --moduleResolution bundler --lib es2022,dom,dom.iterable --outDir js index.ts 1>&2
CLIENT="$OUT/js" node "$TOOLS/typescript-fetch.mjs"`},
	{"openapi-generator python", `generate python
"$TOOLS/venv/bin/python" -m compileall -q openapi_client 1>&2
CLIENT="$OUT" "$TOOLS/venv/bin/python" "$TOOLS/openapi-generator.py"`},
	{"openapi-python-client", `PATH="$TOOLS/venv/bin:$PATH" openapi-python-client generate --path "$DOC" --output-path made --overwrite 1>&2
CLIENT="$OUT/made" "$TOOLS/venv/bin/python" "$TOOLS/openapi-python-client.py"`},
	{"openapi-typescript", `"$TOOLS/node_modules/.bin/openapi-typescript" "$DOC" -o schema.ts 1>&2
echo '{"type":"module"}' > package.json
tsc --strict --target es2022 --module es2022 --moduleResolution bundler --lib es2022,dom,dom.iterable --skipLibCheck --outDir js main.ts 1>&2
node js/main.js`},
}

// scripted are words that all of the scripts use.
const scripted = `set -euo pipefail
generate() { java -Xmx1g -jar "$TOOLS"/venv/lib/python3*/site-packages/openapi_generator_cli/openapi-generator.jar generate -i "$DOC" -o . -g "$@" 1>&2; }
tsc() { "$TOOLS/node_modules/.bin/tsc" "$@"; }
`

func TestGeneratedClients(t *testing.T) {
	s := theStack(t)
	tools := installed(t, "generators", "package-lock.json", []string{"sh", "-c", strings.Join(npmInstall, " ") + " && " + pipInstall[2]})
	for _, d := range []generated{
		{name: "runtime", base: s.dev["SLUICE_RUNTIME_URL"], key: s.dev["SLUICE_API_KEY"]},
		{name: "public", base: s.dev["SLUICE_GATEWAY_URL"], key: s.dev["SLUICE_API_KEY"], way: "key"},
		{name: "session", base: s.dev["SLUICE_GATEWAY_URL"], key: s.dev["SLUICE_SESSION_TOKEN"], way: "session"},
		{name: "admin", base: s.dev["SLUICE_ADMIN_URL"], key: s.dev["SLUICE_ADMIN_KEY"]},
	} {
		t.Run(d.name, func(t *testing.T) {
			d.read(t)
			for _, g := range generators {
				t.Run(g.name, func(t *testing.T) { d.check(t, d.run(t, tools, g.script)) })
			}
		})
	}
}

// read gets the document, and asks plainly what generated clients will ask.
func (d *generated) read(t *testing.T) {
	t.Helper()
	path := map[bool]string{true: "/admin/v1/openapi.json", false: "/openapi.json"}[d.name == "admin"]
	r := call(t, http.MethodGet, d.base+path, d.key, nil)
	wantStatus(t, r, http.StatusOK)
	d.file = filepath.Join(t.TempDir(), d.name+".json")
	if err := os.WriteFile(d.file, []byte(r.body), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(r.body))
	if err != nil {
		t.Fatal(err)
	}
	d.want = map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		for method, op := range doc.Paths.Value(path).Operations() {
			if c := callOf(t, method, path, op); c.ID != "" && d.letsIn(op) {
				d.plain(t, c)
			}
		}
	}
}

// letsIn reports whether the operation is one for the credential of d.
func (d *generated) letsIn(op *openapi3.Operation) bool {
	if d.way == "" || op.Security == nil {
		return true
	}
	takes := func(way string) bool {
		return slices.ContainsFunc(*op.Security, func(r openapi3.SecurityRequirement) bool { _, ok := r[way]; return ok })
	}
	return takes(d.way) && (d.way == "key" || !takes("key")) || d.way == "key" && !takes("session")
}

// callOf is a call of a list or a create; of other operations it is empty.
func callOf(t *testing.T, method, path string, op *openapi3.Operation) generatedCall {
	t.Helper()
	list, create := method == http.MethodGet && strings.HasPrefix(op.OperationID, "list"), method == http.MethodPost && strings.HasPrefix(op.OperationID, "create")
	// A completion is a stream, and error codes are a page for whoever does not ask for JSON.
	aside := op.OperationID == "createChatCompletion" || op.OperationID == "listErrorCodes"
	if strings.Contains(path, "{") || !list && !create || aside {
		return generatedCall{}
	}
	c := generatedCall{ID: op.OperationID, Method: method, Path: path, Body: json.RawMessage("null")}
	if list {
		return c
	}
	media := op.RequestBody.Value.Content["application/json"]
	body, err := json.Marshal(media.Example)
	if err != nil {
		t.Fatal(err)
	}
	c.Schema, c.Body = strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/"), body
	return c
}

// plain makes the call without a generated client. A list must be answered, and a
// create must not fail on our side.
func (d *generated) plain(t *testing.T, c generatedCall) {
	t.Helper()
	var body any
	if c.Schema != "" {
		body = c.Body
	}
	r := call(t, c.Method, d.base+c.Path, d.key, body)
	if c.Schema != "" { // what may be there once is, from now on
		r = call(t, c.Method, d.base+c.Path, d.key, body)
	}
	d.want[c.ID], d.calls = r.StatusCode, append(d.calls, c)
	without := r.StatusCode == http.StatusNotImplemented // an engine that the stack has not
	connected := c.ID != "listLegacyVideos"              // which lists those of another platform: 409 without one
	if !without && (c.Schema == "" && connected || r.StatusCode >= http.StatusInternalServerError) {
		wantStatus(t, r, http.StatusOK)
	}
}

// run has a generator make its client and returns what that prints.
func (d *generated) run(t *testing.T, tools, script string) string {
	t.Helper()
	// Beside what is installed: the modules of Go and Node are found from there.
	out, err := os.MkdirTemp(tools, "made")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(out) })
	calls, err := json.Marshal(d.calls)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "main.ts"), []byte(d.typed()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", scripted+script)
	cmd.Dir = out
	cmd.Env = append(os.Environ(), "DOC="+d.file, "OUT="+out, "TOOLS="+tools, "BASE="+d.base, "KEY="+d.key, "CALLS="+string(calls))
	var said strings.Builder
	cmd.Stderr = &said
	printed, err := cmd.Output()
	if err != nil {
		text := said.String()
		t.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	return string(printed)
}

// typed is a program for openapi-fetch in which every path and body has its type.
func (d *generated) typed() string {
	var b strings.Builder
	b.WriteString("import createClient from \"openapi-fetch\";\nimport type { paths } from \"./schema\";\ndeclare const process: { env: Record<string, string> };\n")
	b.WriteString("const client = createClient<paths>({ baseUrl: process.env.BASE, headers: { Authorization: \"Bearer \" + process.env.KEY } });\nconst seen: Record<string, number> = {};\n")
	for _, c := range d.calls {
		body := ""
		if c.Schema != "" {
			body = fmt.Sprintf(", { body: %s }", c.Body)
		}
		fmt.Fprintf(&b, "seen[%q] = (await client.%s(%q%s)).response.status;\n", c.ID, c.Method, c.Path, body)
	}
	return b.String() + "console.log(JSON.stringify(seen));\n"
}

// check holds a client to the statuses that plain requests get: each answer was read
// into the types of its language.
func (d *generated) check(t *testing.T, printed string) {
	t.Helper()
	var seen map[string]int
	printed = strings.TrimSpace(printed)
	if err := json.Unmarshal([]byte(printed[strings.LastIndex(printed, "\n")+1:]), &seen); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	for _, c := range d.calls {
		if seen[c.ID] != d.want[c.ID] {
			t.Errorf("%s: %d, a plain request gets %d", c.ID, seen[c.ID], d.want[c.ID])
		}
	}
	t.Logf("%d operations: %v", len(d.calls), seen)
}
