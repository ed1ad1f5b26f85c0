package api

import _ "embed" // for OpenAPI

// OpenAPI describes what Public serves but for Config's further routes, and
// what the gateway answers itself: OpenAPI 3.1 as YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte

// AdminOpenAPI describes all that operators are served: OpenAPI 3.1 as YAML. The
// schemas of a configuration and its objects are config.Schema's.
//
//go:embed admin.yaml
var AdminOpenAPI []byte
