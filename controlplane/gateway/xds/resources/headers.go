package resources

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	metadata "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/identityheader"
)

// NamesFilter notes, behind the edge filter, what values of headers name: who calls,
// and what stands in the path. It is off but on routes whose values do.
const NamesFilter = "sluice.names"

// noted are names whose values the NamesFilter takes out of the identity header. An
// expression that does not match would leave all of the header, so it matches all.
var noted = map[string]string{
	config.AccountID: `^(?:[^;]*;)*?a=([^;]*);.*$|^.*$`,
	config.KeyID:     `^(?:[^;]*;)*?k=([^;]*);.*$|^.*$`,
}

// known are names that Envoy has values of.
var known = map[string]string{
	config.RequestID:     "%STREAM_ID%",
	config.ClientAddress: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
}

// namesFilter is the filter, which notes nothing but what routes tell it to.
func namesFilter() *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: NamesFilter, Disabled: true, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&metadata.Config{})}}
}

// namesOf are the names that values of r's headers have and Envoy does not, in order.
func namesOf(r config.Route) []string {
	var names []string
	for _, e := range []*config.HeaderEdit{r.RequestHeaders, r.ResponseHeaders} {
		if e == nil {
			continue
		}
		for _, values := range []map[string]string{e.Set, e.Add} {
			for _, value := range values {
				parts, _ := config.ParseTemplate(value) // Validate has refused those that are none
				for _, p := range parts {
					if p.Name != "" && known[p.Name] == "" {
						names = append(names, p.Name)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// notes tells the NamesFilter what to note of requests for paths of p.
func notes(names []string, p config.Pattern) *metadata.Config {
	c := &metadata.Config{}
	for _, name := range names {
		header, expr := identityheader.Header, noted[name]
		if expr == "" {
			header, expr = ":path", variable(name, p)
		}
		c.RequestRules = append(c.RequestRules, &metadata.Config_Rule{
			Header: header,
			OnHeaderPresent: &metadata.Config_KeyValuePair{
				MetadataNamespace: NamesFilter, Key: name,
				RegexValueRewrite: &matcher.RegexMatchAndSubstitute{
					Pattern: &matcher.RegexMatcher{Regex: expr}, Substitution: `\1`,
				},
			},
		})
	}
	return c
}

// variable is an expression that catches one variable of a path, of which p says the
// form.
func variable(name string, p config.Pattern) string {
	var b strings.Builder
	b.WriteByte('^')
	for _, s := range p {
		b.WriteByte('/')
		switch {
		case s.Kind == config.Literal:
			b.WriteString(regexp.QuoteMeta(s.Text))
		case s.Kind == config.Tail:
			b.WriteString(`.*`)
		case s.Text == name:
			b.WriteString(`([^/?]+)`)
		default:
			b.WriteString(`[^/?]+`)
		}
	}
	return b.String() + `(?:\?.*)?$|^.*$`
}

// editHeaders makes out change headers as r says.
func editHeaders(out *route.Route, r config.Route) {
	if e := r.RequestHeaders; e != nil {
		out.RequestHeadersToAdd = append(out.RequestHeadersToAdd, headersOf(*e)...)
		out.RequestHeadersToRemove = append(slices.Clip(out.RequestHeadersToRemove), removed(*e)...)
	}
	if e := r.ResponseHeaders; e != nil {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, headersOf(*e)...)
		out.ResponseHeadersToRemove = removed(*e)
	}
}

// removed are the headers that e takes away. Those that it sets to what a template
// makes are among them: Envoy leaves a header as it is when that is nothing, and it
// must not be what somebody else has sent.
func removed(e config.HeaderEdit) []string {
	list := slices.Clone(e.Remove)
	for _, name := range slices.Sorted(maps.Keys(e.Set)) {
		if strings.Contains(formatOf(e.Set[name]), "%DYNAMIC_METADATA(") {
			list = append(list, name)
		}
	}
	return list
}

func headersOf(e config.HeaderEdit) (list []*core.HeaderValueOption) {
	for _, name := range slices.Sorted(maps.Keys(e.Set)) {
		list = append(list, replaceHeader(name, formatOf(e.Set[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Add)) {
		h := replaceHeader(name, formatOf(e.Add[name]))
		h.AppendAction = core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
		list = append(list, h)
	}
	return list
}

// formatOf is a template in Envoy's words.
func formatOf(template string) string {
	parts, _ := config.ParseTemplate(template) // Validate has refused those that are none
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Name == "":
			b.WriteString(strings.ReplaceAll(p.Text, "%", "%%"))
		case known[p.Name] != "":
			b.WriteString(known[p.Name])
		default:
			fmt.Fprintf(&b, "%%DYNAMIC_METADATA(%s:%s)%%", NamesFilter, p.Name)
		}
	}
	return b.String()
}
