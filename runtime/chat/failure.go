package chat

import (
	"encoding/json"
	"errors"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// maxMessage bounds what a provider's words may add to an error, in characters.
const maxMessage = 500

// providerError turns the error member of a provider's event into ours.
func providerError(data []byte, v jsonscan.Value) *apierror.Error {
	message := ""
	// Providers write {"message":…} or plain text; of anything else there is
	// nothing to quote.
	switch v.Kind(data) {
	case jsonscan.String:
		message = decode(data, v)
	case jsonscan.Object:
		for w := jsonscan.Members(data, v); w.Step(); {
			if jsonscan.Equal(w.Name, "message") && w.Kind(data) == jsonscan.String {
				message = decode(data, w.Value)
			}
		}
	}
	return apierror.Errorf(decision.BadGateway, "%s", ProviderMessage(message))
}

// decode returns a string's text, cut to what an error may quote.
func decode(data []byte, v jsonscan.Value) string {
	raw := v.Text(data)
	return string(jsonscan.Append(nil, raw[:jsonscan.Cut(raw, maxMessage)]))
}

// ProviderMessage is how an error quotes a provider.
func ProviderMessage(message string) string {
	message = strings.ToValidUTF8(message, "")
	if r := []rune(message); len(r) > maxMessage {
		message = string(r[:maxMessage])
	}
	if message == "" {
		return "The provider failed."
	}
	return "The provider failed: " + message
}

// errorEvent is the envelope as an event, for a stream that has begun. type is
// there for clients that look at it.
func errorEvent(err error, requestID, docs string) []byte {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		e = &apierror.Error{Code: decision.Internal}
	}
	info := decision.Lookup(e.Code)
	message := e.Message
	if message == "" {
		message = info.Message
	}
	// The members are those of the envelope; details have no place once the
	// request was accepted.
	type body struct {
		Code    decision.Code `json:"code"`
		Type    decision.Code `json:"type"`
		Message string        `json:"message"`
		Request string        `json:"request_id"`
		Docs    string        `json:"documentation_url"`
	}
	data, _ := json.Marshal(struct { // strings only: it cannot fail
		Error body `json:"error"`
	}{body{info.Code, info.Code, message, requestID, decision.DocsURL(docs, info.Code)}})
	return data
}
