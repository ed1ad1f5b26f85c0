package media

import _ "embed"

// OpenAPI is the description of every route of this package, as YAML. The tests
// hold each request and answer against it.
//
//go:embed openapi.yaml
var OpenAPI []byte
