package api

import _ "embed" // for OpenAPI

// OpenAPI describes what Public serves but for Config's further routes, and
// what the gateway answers itself: OpenAPI 3.1 as YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
