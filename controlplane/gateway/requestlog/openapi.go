package requestlog

import _ "embed" // for OpenAPI

// OpenAPI describes what Routes mounts: OpenAPI 3.0.3 as YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
