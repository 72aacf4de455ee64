package tokendelta_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"rnix/runtime/tokendelta"
)

func stream(ctx context.Context, platform, token string) error {
	p, err := tokendelta.New(tokendelta.Config{SessionID: "s1", BaseURL: platform, AuthToken: token})
	if err != nil {
		return err
	}
	p.Start(ctx)
	defer p.Stop()
	p.SetTurn("turn-1")
	for i, text := range []string{"All ", "tests ", "pass."} {
		p.Send(tokendelta.Frame{Index: i, Text: text, Done: i == 2})
	}
	return nil
}

func Example() {
	platform := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, body, _ := strings.Cut(string(b), `"turnId"`)
		fmt.Println(body)
	}))
	defer platform.Close()
	fmt.Println(stream(context.Background(), platform.URL, "secret"))
	// Output:
	// :"turn-1","frames":[{"index":0,"text":"All ","done":false},{"index":1,"text":"tests ","done":false},{"index":2,"text":"pass.","done":true}]}
	// <nil>
}
