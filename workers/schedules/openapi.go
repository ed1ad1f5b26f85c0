package schedules

import _ "embed"

// OpenAPI is the description of every route of this package, as YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
