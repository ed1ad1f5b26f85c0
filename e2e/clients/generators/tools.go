// Package generators pins what the generated clients import.
package generators

import (
	_ "github.com/oapi-codegen/runtime"
	_ "gopkg.in/validator.v2"
)
