package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/web/mcp/toolset"
)

// The tools that find and call the others.
const (
	searchTools = "search_tools"
	callTool    = "call_tool"
)

// Bounds of what is found.
const (
	maxFound   = 12 << 10 // bytes of the tools that are described in full
	maxSchema  = 16 << 10 // bytes of what is said of the first of them
	defaultHit = 5        // tools described in full, unless asked for another number
	maxHits    = 20
	maxNames   = 40  // tools named behind these
	maxQuery   = 400 // bytes
	maxAbout   = 600 // bytes of a tool's description
)

// object is a JSON object.
type object = map[string]any

// describeSearch is search_tools, with the sets that there are.
func (k *catalog) describeSearch() *sdk.Tool {
	var sets []string
	for _, name := range k.setNames() {
		sets = append(sets, fmt.Sprintf("%s (%d)", name, k.sets[name]))
	}
	const most = 3000
	about := "Find tools by what they do, and read what they take. Call one by its name, or with " + callTool + ". " +
		"Without a query it names the tools of a set. Sets, with how many tools each has: "
	return &sdk.Tool{Name: searchTools, Title: "Find tools", Description: about + fmt.Sprintf("%.*s.", most, strings.Join(sets, ", ")),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		InputSchema: object{"type": "object", "additionalProperties": false, "properties": object{
			"query":   object{"type": "string", "maxLength": maxQuery, "description": "A few words, such as: create webhook. Or the name of a tool."},
			"toolset": object{"type": "string", "description": "Look in this set alone."},
			"limit":   object{"type": "integer", "minimum": 1, "maximum": maxHits, "default": defaultHit, "description": "How many are described in full."},
		}}}
}

// describeCall is call_tool.
func describeCall() *sdk.Tool {
	return &sdk.Tool{Name: callTool, Title: "Call a tool", Description: "Call a tool that " + searchTools + " has found.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(true)},
		InputSchema: object{"type": "object", "additionalProperties": false, "required": []string{"name", "arguments"}, "properties": object{
			"name":      object{"type": "string", "description": "The tool's name, as found."},
			"arguments": object{"type": "object", "description": "As the tool's input_schema says."},
		}}}
}

// hit is a tool that was found.
type hit struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	ReadOnly    bool     `json:"read_only"`
	Input       object   `json:"input_schema,omitempty"`
	Cut         string   `json:"input_schema_cut,omitempty"`
	Fields      []string `json:"answer_fields,omitempty"`
}

// found is what search_tools answers.
type found struct {
	Tools []hit `json:"tools"`
	// More are those that are not described, at most maxNames, by their names.
	More []string `json:"more,omitempty"`
	// Matches are all, those included that are not named.
	Matches int `json:"matches"`
	// Beyond are scopes of tools that the words fit and the credential does not.
	Beyond []string `json:"beyond_your_scopes,omitempty"`
	Hint   string   `json:"hint,omitempty"`
}

// search answers search_tools. It takes time linear in the arguments, of 1 MiB at most, and
// in the words of all tools for each of the first words of the query.
func (k *catalog) search(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var in struct {
		Query, Toolset string
		Limit          *int
	}
	dec := json.NewDecoder(bytes.NewReader(orEmpty(req.Params.Arguments)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil || len(in.Query) > maxQuery {
		return refused([]decision.Detail{{Field: "arguments", Issue: "are not those of this tool", Expected: fmt.Sprintf("query, of %d bytes at most, toolset, limit", maxQuery)}})
	}
	if in.Toolset != "" && k.sets[in.Toolset] == 0 {
		return refused([]decision.Detail{{Field: "toolset", Issue: "is none that there is", Expected: fmt.Sprintf("one of %.2000s", strings.Join(k.setNames(), ", "))}})
	}
	limit := defaultHit
	if in.Limit != nil {
		limit = min(max(*in.Limit, 1), maxHits)
	}
	return answer(k.find(choiceOf(ctx), in.Query, in.Toolset, limit))
}

// find looks for tools.
func (k *catalog) find(ch choice, query, set string, limit int) found {
	var f found
	beyond := map[string]bool{}
	all := k.index.Find(query, func(t toolset.Tool) bool { return ch.takes(t) && (set == "" || t.Set() == set) })
	names := strings.TrimSpace(query) == ""
	room := maxFound
	f.Tools = []hit{}
	for _, t := range all {
		if !ch.reaches(t) {
			if !ch.covers(t) {
				beyond[t.Route.Scope] = true
			}
			continue
		}
		f.Matches++
		if !names && len(f.Tools) < limit {
			h, size := full(t)
			if len(f.Tools) == 0 || size <= room {
				f.Tools, room = append(f.Tools, h), room-size
				continue
			}
		}
		if len(f.More) < maxNames || names && set != "" {
			f.More = append(f.More, t.Name)
		}
	}
	for scope := range beyond {
		f.Beyond = append(f.Beyond, scope)
	}
	slices.Sort(f.Beyond)
	f.Beyond = f.Beyond[:min(len(f.Beyond), maxHits)]
	switch {
	case f.Matches == 0:
		f.Hint = "Nothing has these words. Try others, or give a toolset alone to see what is in it: " + strings.Join(k.setNames(), ", ") + "."
	case f.Matches > len(f.Tools):
		f.Hint = "Give the name of a tool as query to read what it takes."
	}
	return f
}

// full describes a tool, and says in how many bytes.
func full(t toolset.Tool) (hit, int) {
	h := hit{Name: t.Name, Description: cutText(t.Description, maxAbout) + needs(t.Route), ReadOnly: t.ReadOnly(), Input: t.Input, Fields: t.Fields()}
	b, err := json.Marshal(h)
	if err == nil && len(b) > maxSchema {
		h.Input, h.Cut = nil, "It is too long to be shown. It is that of "+t.Method+" "+t.Path+" in /openapi.json. The arguments are "+strings.Join(argumentNames(t), ", ")+"."
		b, err = json.Marshal(h)
	}
	if err != nil {
		return h, maxSchema // what cannot be written stands in no answer
	}
	return h, len(b)
}

// argumentNames are those that a tool takes.
func argumentNames(t toolset.Tool) []string {
	var names []string
	for _, a := range t.Arguments[:min(len(t.Arguments), 100)] {
		names = append(names, a.Name)
	}
	return names
}

// cutText is a text of at most n bytes, whole characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// answer is a result in JSON.
func answer(v any) (*sdk.CallToolResult, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write what was found: %w", err)
	}
	return &sdk.CallToolResult{StructuredContent: json.RawMessage(b), Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}, nil
}

// orEmpty is an object where there is nothing.
func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// call answers call_tool: it is the call of that tool. Arguments may be an object in a
// text, as some models write them.
func (k *catalog) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var in struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(orEmpty(req.Params.Arguments), &in); err != nil {
		return refused([]decision.Detail{{Field: "arguments", Issue: "are not those of this tool", Expected: "name, a text, and arguments, an object"}})
	}
	t, ok := k.tool(in.Name)
	if !ok {
		return refused([]decision.Detail{{Field: "name", Issue: "is no tool's", Expected: "a name as " + searchTools + " finds it"}})
	}
	var text string
	if json.Unmarshal(in.Arguments, &text) == nil && text != "" {
		in.Arguments = json.RawMessage(text)
	}
	inner := *req
	params := *req.Params
	params.Name, params.Arguments = in.Name, in.Arguments
	inner.Params = &params
	return k.config.handler(t)(ctx, &inner)
}
