package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/platform/http/mcpserver"
	"sluice.dev/sluice/web/mcp/toolset"
)

// maxListed bounds the tools that are listed for clients who have chosen none, in bytes of
// JSON: five thousand tokens or so, which a model reads with each of its turns.
const maxListed = 20 << 10

// catalog is the tools of a document.
type catalog struct {
	config Config
	tools  []toolset.Tool
	index  *toolset.Index
	seen   map[string]*sdk.Tool // by name, as agents see it
	size   map[string]int       // of that, in bytes
	sets   map[string]int       // tools of each set
	meta   []*sdk.Tool          // those that find and call the others
}

// newCatalog reads a document.
func newCatalog(c Config, text []byte) (*catalog, error) {
	all, err := toolset.From(text)
	if err != nil {
		return nil, err
	}
	k := &catalog{config: c, seen: map[string]*sdk.Tool{}, size: map[string]int{}, sets: map[string]int{}}
	for _, t := range all {
		if t.Path == Path || t.Name == searchTools || t.Name == callTool {
			continue
		}
		k.tools = append(k.tools, t)
		k.sets[t.Set()]++
		k.seen[t.Name] = described(t)
		b, err := json.Marshal(k.seen[t.Name])
		if err != nil {
			return nil, fmt.Errorf("write tool %s: %w", t.Name, err)
		}
		k.size[t.Name] = len(b)
	}
	k.index = toolset.NewIndex(k.tools)
	k.meta = []*sdk.Tool{k.describeSearch(), describeCall()}
	return k, nil
}

// server is a server that calls every tool by its name, and lists what its client wants.
func (k *catalog) server() *sdk.Server {
	server := mcpserver.NewServer(About(k.config.Version))
	for _, t := range k.tools {
		server.AddTool(k.seen[t.Name], k.config.handler(t))
	}
	server.AddTool(k.meta[0], k.search)
	server.AddTool(k.meta[1], k.call)
	server.AddReceivingMiddleware(k.listing)
	return server
}

// listing answers tools/list with what the client wants.
func (k *catalog) listing(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*sdk.ListToolsResult)
		if err != nil || !ok {
			return res, err
		}
		ch := choiceOf(ctx)
		for _, set := range ch.sets {
			if k.sets[set] == 0 && set != allSets && set != searchSet {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("There is no tool set %.100q. There are %s, %s and %s.", set, strings.Join(k.setNames(), ", "), searchSet, allSets)}
			}
		}
		list.Tools, list.NextCursor = k.listed(ch), ""
		list.CacheScope = "private" // it is for these scopes
		return list, nil
	}
}

// listed are the tools that a client is shown: those of the sets that it has chosen, or
// else those that it can call when they fit into maxListed, or else those that find and
// call the others.
func (k *catalog) listed(ch choice) []*sdk.Tool {
	out, bytes := []*sdk.Tool{}, 0
	for _, t := range k.tools {
		if ch.takes(t) && (ch.has(allSets) || ch.reaches(t)) {
			out, bytes = append(out, k.seen[t.Name]), bytes+k.size[t.Name]
		}
	}
	if len(ch.sets) == 0 && bytes > maxListed {
		return k.meta
	}
	if ch.has(searchSet) {
		out = append(out, k.meta...)
	}
	return out
}

// setNames lists the sets.
func (k *catalog) setNames() []string {
	var names []string
	for name := range k.sets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tool is the tool of a name; false: there is none.
func (k *catalog) tool(name string) (toolset.Tool, bool) {
	i := slices.IndexFunc(k.tools, func(t toolset.Tool) bool { return t.Name == name })
	if i < 0 {
		return toolset.Tool{}, false
	}
	return k.tools[i], true
}
