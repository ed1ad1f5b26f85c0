package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// decodeNumbers decodes JSON and keeps numbers as they are written: a payload's
// large integers must not lose digits.
func decodeNumbers(raw []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}
