package app

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/runtime/server"
	"sluice.dev/sluice/web/openapi"
)

// SDKDocument is the OpenAPI document, as JSON, of which the SDKs are made: the operations
// of the public API under /v1 that want a credential under the default configuration, and
// the two of chat, which have the tag chat. It fails when a fragment cannot be read.
func SDKDocument() ([]byte, error) {
	d, err := config.Default()
	if err != nil {
		return nil, err
	}
	chat, err := chatFragment()
	if err != nil {
		return nil, err
	}
	joined, err := openapi.Join(append(slices.Clone(fragments), openapi.Fragment{Name: "chat", Product: "runtime", YAML: chat})...)
	if err != nil {
		return nil, err
	}
	paths := map[string]any{}
	public, _ := joined.Public(d, openapi.Info{})["paths"].(map[string]any)
	for path, v := range public {
		if item, ok := v.(map[string]any); ok && strings.HasPrefix(path, "/v1/") && credentialed(item) {
			paths[path] = item
		}
	}
	for _, path := range chatPaths {
		paths[path] = joined.Paths[path]
	}
	return json.Marshal(map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "Sluice", "version": openapi.APIVersion},
		"paths": paths, "components": joined.Components,
	})
}

// chatPaths are those that the chat runtime alone serves.
var chatPaths = []string{"/v1/chat/completions", "/v1/models"}

// chatFragment is the description of the chat runtime without what the gateway serves too.
func chatFragment() ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(server.Description(), &doc); err != nil {
		return nil, err
	}
	paths, _ := doc["paths"].(map[string]any)
	maps.DeleteFunc(paths, func(path string, _ any) bool { return !slices.Contains(chatPaths, path) })
	for _, v := range paths {
		item, _ := v.(map[string]any)
		for _, v := range item {
			if op, ok := v.(map[string]any); ok {
				op["tags"], op["x-once"] = []any{"chat"}, false // it says itself which keys it takes
			}
		}
	}
	return json.Marshal(doc)
}

// credentialed removes from a path's item the operations that are open to everybody, and
// reports whether any is left.
func credentialed(item map[string]any) bool {
	left := false
	maps.DeleteFunc(item, func(_ string, v any) bool {
		op, ok := v.(map[string]any)
		if !ok {
			return false
		}
		ways, _ := op["security"].([]any)
		wants := slices.ContainsFunc(ways, func(way any) bool { m, _ := way.(map[string]any); return len(m) > 0 && m["payment"] == nil })
		left = left || wants
		return !wants
	})
	return left
}
