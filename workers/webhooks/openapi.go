package webhooks

import _ "embed" // for OpenAPI

// OpenAPI describes the routes under /v1/webhooks: OpenAPI 3.0.3 as YAML. The
// tests of the handlers check each answer against it.
//
//go:embed openapi.yaml
var OpenAPI []byte
