package permit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rnix/types"
)

// AskPath is where agents ask persons questions of their own. A call with this path is such a question: no rule is needed for a person to be asked.
const AskPath = "/sys/ask"

// What a question may have: bytes of it and of each choice, and how many choices. MaxAnswer bounds what a person answers, in bytes.
const (
	MaxQuestion = 4 << 10
	MaxChoice   = 200
	MaxChoices  = 12
	MaxAnswer   = 16 << 10
)

// Question is what an agent wants to know of a person. Its texts are those of a model.
type Question struct {
	Text    string   `json:"question"`
	Choices []string `json:"choices,omitempty"`
	// Default is what counts if no person answers in time, where the agent's file has such a time; empty = nothing.
	Default string `json:"default,omitempty"`
}

// ReadQuestion reads the input of a call. INVALID says what is wrong with it.
func ReadQuestion(input json.RawMessage) (q Question, err error) {
	bad := func(format string, args ...any) (Question, error) {
		return Question{}, types.Errorf(types.ErrInvalid, "Ask", "", format, args...)
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return bad("%w", err)
	}
	switch {
	case strings.TrimSpace(q.Text) == "":
		return bad("the question is empty")
	case len(q.Text) > MaxQuestion:
		return bad("the question has %d bytes, of at most %d; ask shortly, and put what is longer into a file", len(q.Text), MaxQuestion)
	case len(q.Choices) > MaxChoices:
		return bad("there are %d choices, of at most %d", len(q.Choices), MaxChoices)
	case len(q.Default) > MaxAnswer:
		return bad("the default has %d bytes, of at most %d", len(q.Default), MaxAnswer)
	}
	for i, c := range q.Choices {
		c = strings.TrimSpace(c)
		q.Choices[i] = c
		switch {
		case c == "":
			return bad("choice %d is empty", i+1)
		case len(c) > MaxChoice:
			return bad("choice %d has %d bytes, of at most %d; say more in the question", i+1, len(c), MaxChoice)
		case strings.ContainsFunc(c, unicode.IsControl):
			return bad("choice %d must be one line", i+1)
		case slices.Contains(q.Choices[:i], c):
			return bad("choice %d is the same as another one", i+1)
		}
	}
	if q.Default = strings.TrimSpace(q.Default); q.Default != "" && len(q.Choices) > 0 {
		chosen := q.Answer(q.Default)
		if !slices.Contains(q.Choices, chosen) {
			return bad("the default must be one of the choices")
		}
		q.Default = chosen
	}
	return q, nil
}

// Answer returns what a person means: a choice by its text, whatever upper and lower case it is written in, or by its number from 1; else what was said.
func (q *Question) Answer(text string) string {
	text = strings.TrimSpace(text)
	if slices.Contains(q.Choices, text) {
		return text
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Choices) {
		return q.Choices[n-1]
	}
	if i := slices.IndexFunc(q.Choices, func(c string) bool { return strings.EqualFold(c, text) }); i >= 0 {
		return q.Choices[i]
	}
	return text
}

// CheckAnswer returns an INVALID error if a text is no answer to a question.
func CheckAnswer(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return types.Errorf(types.ErrInvalid, "Answer", "", "the answer is empty")
	case len(text) > MaxAnswer || !utf8.ValidString(text):
		return types.Errorf(types.ErrInvalid, "Answer", "", "the answer must be UTF-8 of at most %d bytes", MaxAnswer)
	}
	return nil
}

// Question reports whether the call is a question of the agent's own.
func (c *Call) Question() bool { return c.Path == AskPath }

// MaxAfter is the longest time after which the default of a question counts.
const MaxAfter = 366 * 24 * time.Hour
