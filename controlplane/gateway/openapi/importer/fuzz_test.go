package importer

import (
	"maps"
	"os"
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
)

// Whatever a document says, edges take what its routes ask of requests, and the file
// that an import writes says the same.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"checked-2.json", "checked-30.yaml", "checked-31.yaml", "legacy.json", "modern.yaml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := document.Read(text, nil)
		if err != nil {
			return
		}
		r, err := Import(d, Options{Upstream: "http://127.0.0.1:1", Checks: Checks{On: true}})
		if err != nil {
			return
		}
		for _, route := range r.Routes {
			if _, faults := config.RequestFaults(route, r.Product.Schemas); faults != nil {
				t.Fatalf("%s: %v", route.Name, faults)
			}
		}
		file, err := Update(nil, r)
		if err != nil {
			return
		}
		c, _, err := config.ParseYAML(file)
		same := func(a, b config.Route) bool { return a.Request.Equal(b.Request) }
		if err != nil || !maps.Equal(c.Products[0].Schemas, r.Product.Schemas) || !slices.EqualFunc(c.Routes, r.Routes, same) {
			t.Fatalf("the file says something else: %v\n%s", err, file)
		}
	})
}
