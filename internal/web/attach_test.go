package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/media"
	"rnix/internal/testenv"
	"rnix/ipc"
)

func pictureOf(w, h int) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)))
	return b.Bytes(), err
}

// onlooker works until it is released, and then says how wide the images are that it is shown.
func onlooker(r llmtest.Request) llmtest.Reply {
	if _, worked := r.LastResult(); !worked {
		in, _ := json.Marshal(map[string]string{"command": "until [ -e release ]; do sleep 0.5; done"}) // strings always can
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "w", Name: "shell", Input: string(in)}}}
	}
	said := "shown:"
	for w := 30; w <= 34; w++ {
		if b, err := pictureOf(w, 2); err == nil && bytes.Contains(r.Body, []byte(base64.StdEncoding.EncodeToString(b))) {
			said += " " + strconv.Itoa(w)
		}
	}
	return llmtest.Reply{Text: said + "."}
}

func TestImagesAreAttachedInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, onlooker)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	d.scenario(chromium, "attach.mjs", func(word string) string {
		switch what, arg, _ := strings.Cut(word, " "); what {
		case "picture":
			var w, h int
			_, err := fmt.Sscan(arg, &w, &h)
			if err != nil {
				return err.Error()
			}
			b, err := pictureOf(w, h)
			if err != nil {
				return err.Error()
			}
			return base64.StdEncoding.EncodeToString(b)
		case "release":
			s.Write("release", "")
		}
		return "done"
	})
}

func TestThePageKnowsTheLimitsOfAttachments(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("app", "src", "lib", "attach.js"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("limits = { image: %d, pdf: %d, side: %d, files: %d, all: %d };", media.MaxImage, media.MaxPDF, media.MaxSide, rnixctx.MaxAttachments, ipc.MaxAttached)
	if !bytes.Contains(src, []byte(want)) {
		t.Errorf("attach.js lacks %s", want)
	}
	kinds := regexp.MustCompile(`accept = '([^']*)'`).FindSubmatch(src)
	if kinds == nil || string(kinds[1]) != strings.Join([]string{media.PNG, media.JPEG, media.GIF, media.WebP, media.PDF}, ",") {
		t.Errorf("%s", kinds)
	}
}
