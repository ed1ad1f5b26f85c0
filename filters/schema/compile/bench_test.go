package compile

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/schema"
)

// BenchmarkJSON checks an order of 16 KB with formats, patterns, bounds and a union.
func BenchmarkJSON(b *testing.B) {
	const line = `{"sku":"ABC-1234","quantity":12,"price":19.99,"currency":"EUR","note":"leave it at the door, please","shipped":"2026-11-22T13:00:00Z","gift":false,"size":"XL"}`
	body := []byte(`{"lines":[` + strings.TrimSuffix(strings.Repeat(line+",", 100), ",") + `]}`)
	encoded, faults := Table(Request{Body: &Body{Contents: []Content{{Type: "application/json", Schema: `{"properties":{"lines":{"type":"array","items":{"type":"object","required":["sku","quantity","price"],"additionalProperties":false,"properties":{
		"sku":{"type":"string","pattern":"^[A-Z]{3}-[0-9]{4}$"},"quantity":{"type":"integer","minimum":1,"maximum":1000},"price":{"type":"number","multipleOf":0.01},
		"currency":{"enum":["EUR","USD","GBP"]},"note":{"type":["string","null"],"maxLength":200},"shipped":{"type":"string","format":"date-time"},"gift":{"type":"boolean"},
		"size":{"oneOf":[{"type":"integer"},{"type":"string","maxLength":3}]}}}}}}`}}}}, nil)
	if faults != nil {
		b.Fatal(faults)
	}
	table, c := schema.Parse(encoded), new(schema.Checker)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		c.Start(table)
		c.JSON(c.Body("application/json").Node, body)
		if len(c.Details()) > 0 {
			b.Fatal(c.Details())
		}
	}
}
