// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"reflect"
	"time"
)

// JSON has a text for the years 0 to 9999 only. A time that somebody wrote into an object, or
// one that is computed from it, may lie beyond: those are shown as one of these.
var (
	earliest = time.Date(0, 1, 2, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)
)

// JSON is the JSON of what is told, also where it has times that JSON has no text for.
func JSON(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err == nil {
		return raw, nil
	}
	return json.Marshal(shownTimes(reflect.ValueOf(value)).Interface())
}

// shownTimes is a copy of a value in which each time has a text in JSON. What is told is a
// tree: nothing of it leads back.
func shownTimes(v reflect.Value) reflect.Value {
	if !v.IsValid() {
		return v
	}
	if t, ok := v.Interface().(time.Time); ok {
		if t.Before(earliest) && !t.IsZero() {
			t = earliest
		} else if t.After(latest) {
			t = latest
		}
		return reflect.ValueOf(t)
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return out
		}
		inner := shownTimes(v.Elem())
		if v.Kind() == reflect.Pointer {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(inner)
		} else {
			out.Set(inner)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(shownTimes(v.Field(i)))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(shownTimes(v.Index(i)))
		}
	case reflect.Map:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeMap(v.Type()))
		for each := v.MapRange(); each.Next(); {
			out.SetMapIndex(each.Key(), shownTimes(each.Value()))
		}
	default: // holds no time
	}
	return out
}
