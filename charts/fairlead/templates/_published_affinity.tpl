{{- /* Value that a guard or a requirement reads from the pod: `.` is its variable. */ -}}
{{- define "fairlead.publishedAffinity.value" -}}
(has({{ . }}.label) ? ({{ . }}.label in variables.labels ? variables.labels[{{ . }}.label] : {{ . }}.default)
: has({{ . }}.annotation) ? ({{ . }}.annotation in variables.annotations ? variables.annotations[{{ . }}.annotation] : {{ . }}.default)
: has({{ . }}.namespaceLabel) ? ({{ . }}.namespaceLabel in variables.namespaceLabels ? variables.namespaceLabels[{{ . }}.namespaceLabel] : {{ . }}.default)
: object.metadata.namespace)
{{- end -}}

{{- /* Whether what a guard reads is there. */ -}}
{{- define "fairlead.publishedAffinity.present" -}}
(has({{ . }}.label) ? {{ . }}.label in variables.labels
: has({{ . }}.annotation) ? {{ . }}.annotation in variables.annotations
: has({{ . }}.namespaceLabel) ? {{ . }}.namespaceLabel in variables.namespaceLabels
: has({{ . }}.resource) ? {{ . }}.resource in variables.resources : true)
{{- end -}}

{{- /* Whether all guards of a policy or of a term hold: `.` is its variable. */ -}}
{{- define "fairlead.publishedAffinity.holds" -}}
(!has({{ . }}.when) || {{ . }}.when.all(w,
w.operator == 'In' ? {{ include "fairlead.publishedAffinity.value" "w" }} in w.values
: w.operator == 'NotIn' ? !({{ include "fairlead.publishedAffinity.value" "w" }} in w.values)
: w.operator == 'Exists' ? {{ include "fairlead.publishedAffinity.present" "w" }}
: !{{ include "fairlead.publishedAffinity.present" "w" }}))
{{- end -}}

{{- /* A variable that holds an optional loses it, so `has` is asked wherever a field may be absent. */ -}}
{{- define "fairlead.publishedAffinity.variables" -}}
- name: labels
  expression: "has(object.metadata.labels) ? object.metadata.labels : {}"
- name: annotations
  expression: "has(object.metadata.annotations) ? object.metadata.annotations : {}"
- name: namespaceLabels
  expression: "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}"
- name: resources
  expression: >-
    object.spec.containers.map(c,
    has(c.resources) && has(c.resources.limits) ? c.resources.limits.map(name, name) : []).flatten()
- name: lists # of terms, one for each policy; without those that would ask for nothing, or for what no label can be
  expression: >-
    params.spec.policies.filter(p, {{ include "fairlead.publishedAffinity.holds" "p" | nindent 4 }})
    .map(p, p.terms.filter(t, {{ include "fairlead.publishedAffinity.holds" "t" | nindent 4 }}))
    .filter(l, size(l) > 0 && l.all(t, has(t.matchExpressions) && t.matchExpressions.all(r,
    !(r.operator in ['In', 'NotIn']) || has(r.values)
    || {{ include "fairlead.publishedAffinity.value" "r" | nindent 4 }}.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$'))))
    .map(l, l.map(t, t.matchExpressions.map(r,
    has(r.values) ? {'key': dyn(r.key), 'operator': dyn(r.operator), 'values': dyn(r.values)}
    : r.operator in ['In', 'NotIn'] ? {'key': dyn(r.key), 'operator': dyn(r.operator),
    'values': dyn([{{ include "fairlead.publishedAffinity.value" "r" | nindent 4 }}])}
    : {'key': dyn(r.key), 'operator': dyn(r.operator)})))
- name: common # to all alternatives
  expression: variables.lists.filter(l, size(l) == 1).map(l, l[0]).flatten()
- name: several
  expression: variables.lists.filter(l, size(l) > 1)
- name: product # of the alternatives of up to three policies
  expression: >-
    (size(variables.several) > 0 ? variables.several[0] : [[]]).map(a,
    (size(variables.several) > 1 ? variables.several[1] : [[]]).map(b,
    (size(variables.several) > 2 ? variables.several[2] : [[]]).map(c, {'all': variables.common + a + b + c})))
    .flatten().flatten().map(one, one.all)
- name: added # lists of requirements, of which one has to hold
  expression: >-
    size(variables.lists) == 0 ? [] : size(variables.product) <= 16 ? variables.product
    : size(variables.common) > 0 ? [variables.common] : []
- name: terms
  expression: >-
    has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity)
    && has(object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution)
    ? object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms : []
- name: places # of the terms to which something is added: an empty one selects nothing, and stays so
  expression: >-
    lists.range(size(variables.terms)).filter(i,
    (has(variables.terms[i].matchExpressions) || has(variables.terms[i].matchFields))
    && !(has(variables.terms[i].matchExpressions) && variables.added.exists(one, one.all(r,
    variables.terms[i].matchExpressions.exists(own, dyn(own.key) == r.key && dyn(own.operator) == r.operator
    && (has(own.values) ? dyn(own.values) : dyn([])) == ('values' in r ? r['values'] : dyn([])))))))
{{- end -}}

{{- /* In place: each further alternative is a copy of the pod's own term. Typed values cannot be put into a patch. */ -}}
{{- define "fairlead.publishedAffinity.patches" -}}
{{- $required := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $path := printf "/spec/affinity/nodeAffinity/%s" $required }}
{{- $terms := printf "{'nodeSelectorTerms': variables.added.map(one, {'matchExpressions': one})}" }}
{{- $place := "string(j == 0 ? variables.places[x] : size(variables.terms) + (j - 1) * size(variables.places) + x)" }}
size(variables.added) == 0 || size(variables.places) * size(variables.added) > 64 ? [] :
(has(object.metadata.annotations)
? [JSONPatch{op: 'add', path: '/metadata/annotations/fairlead.dev~1published-affinity', value: params.spec.hash}]
: [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'fairlead.dev/published-affinity': params.spec.hash}}])
+ (!has(object.spec.affinity)
? [JSONPatch{op: 'add', path: '/spec/affinity', value: {'nodeAffinity': {'{{ $required }}': {{ $terms }}}}}]
: !has(object.spec.affinity.nodeAffinity)
? [JSONPatch{op: 'add', path: '/spec/affinity/nodeAffinity', value: {'{{ $required }}': {{ $terms }}}}]
: !has(object.spec.affinity.nodeAffinity.{{ $required }})
? [JSONPatch{op: 'add', path: '{{ $path }}', value: {{ $terms }}}]
: lists.range(size(variables.added) - 1).map(j, variables.places.map(i,
JSONPatch{op: 'copy', from: '{{ $path }}/nodeSelectorTerms/' + string(i), path: '{{ $path }}/nodeSelectorTerms/-'})).flatten()
+ lists.range(size(variables.added)).map(j, lists.range(size(variables.places)).map(x,
(has(variables.terms[variables.places[x]].matchExpressions) ? []
: [JSONPatch{op: 'add', path: '{{ $path }}/nodeSelectorTerms/' + {{ $place }} + '/matchExpressions', value: []}])
+ variables.added[j].map(r, JSONPatch{op: 'add',
path: '{{ $path }}/nodeSelectorTerms/' + {{ $place }} + '/matchExpressions/-', value: r}))).flatten().flatten())
{{- end -}}
