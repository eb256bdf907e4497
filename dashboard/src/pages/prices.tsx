export function PricesPage(_: { readonly query: URLSearchParams }) {
  return <h1>Prices</h1>
}
