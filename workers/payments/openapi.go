package payments

import _ "embed"

// OpenAPI is the description of what the payments service serves behind the gateway, as YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
