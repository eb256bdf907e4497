import { defineRoute, replyWhole, UNSTORED } from './route.ts'

/** The path of the metrics, which with `metrics.public` needs no key. */
export const METRICS_PATH = '/metrics'

export const metricsRoute = defineRoute({
  endpoint: `GET ${METRICS_PATH}`,
  operationId: 'get_metrics',
  summary: 'Metrics of this node',
  description:
    'In the OpenMetrics text format, whatever `Accept` says. With `metrics.public` in the configuration it needs no key.',
  success: {
    status: 200,
    schema: null,
    alsoAs: { 'application/openmetrics-text': 'Every metric with its type, its help and its samples.' },
  },
  async handle(_request, management) {
    const { contentType, text } = await management.scrapeMetrics()
    return replyWhole(200, contentType, text, UNSTORED)
  },
})
